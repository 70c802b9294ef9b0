"""Key and amount columns of any Spark DataFrame."""

from adapt.core.errors import UsageError, did_you_mean
from adapt.core.stream import KeyType
from adapt.traces.counting.weights import SPARK_KEYS
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, T


def key_column(frame: DataFrame, name: str) -> tuple[Column, KeyType]:
    """A column of keys, cast to its key type.

    Raises:
        UsageError: the column is missing, or not text, binary or integers.
    """
    kind = _type_of(frame, name)
    if isinstance(kind, (T.ByteType, T.ShortType, T.IntegerType, T.LongType)):
        key_type = KeyType.INT64
    elif isinstance(kind, T.StringType):
        key_type = KeyType.STRING
    elif isinstance(kind, T.BinaryType):
        key_type = KeyType.BINARY
    else:
        raise UsageError(f"key column {name!r} must be text, binary or integers (got {kind.simpleString()})")
    return quoted(name).cast(SPARK_KEYS[key_type]), key_type


def amount_column(frame: DataFrame, name: str, *, whole: bool | None = None) -> tuple[Column, bool]:
    """A column of amounts: integers as bigint, others as double.

    Args:
        whole: Whether to return integers; None keeps the kind of the column.

    Returns:
        The column, and whether it holds integers.

    Raises:
        UsageError: the column is missing or not numeric, or not integers although `whole`.
    """
    kind = _type_of(frame, name)
    if not isinstance(kind, T.NumericType):
        raise UsageError(f"column {name!r} must be numeric (got {kind.simpleString()})")
    integral = isinstance(kind, T.IntegralType)
    if whole and not integral:
        raise UsageError(f"column {name!r} must be integers, as it counts bytes (got {kind.simpleString()})")
    is_whole = integral if whole is None else whole
    return quoted(name).cast("bigint" if is_whole else "double"), is_whole


def _type_of(frame: DataFrame, name: str) -> "T.DataType":
    if name not in frame.columns:
        raise UsageError(f"column {name!r} does not exist{did_you_mean(name, frame.columns)}")
    return frame.schema[name].dataType
