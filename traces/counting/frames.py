"""Columns of a Spark DataFrame as keys and as amounts, whoever made it."""

from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.traces.counting.weights import SPARK_KEYS
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, T


def key_column(frame: DataFrame, name: str) -> tuple[Column, KeyType]:
    """A column of keys, in the type in which keys are counted.

    Raises:
        UsageError: there is no such column, or it holds neither text nor binary nor whole numbers.
    """
    kind = _type_of(frame, name)
    if isinstance(kind, (T.ByteType, T.ShortType, T.IntegerType, T.LongType)):
        key_type = KeyType.INT64
    elif isinstance(kind, T.StringType):
        key_type = KeyType.STRING
    elif isinstance(kind, T.BinaryType):
        key_type = KeyType.BINARY
    else:
        raise UsageError(f"column {name!r} is {kind.simpleString()}, but keys are text, binary or whole numbers")
    return quoted(name).cast(SPARK_KEYS[key_type]), key_type


def amount_column(frame: DataFrame, name: str, *, whole: bool | None = None) -> tuple[Column, bool]:
    """A column of amounts: whole numbers as bigint, others as double.

    Args:
        whole: Which of the two it is to be; None, as it is in the frame.

    Returns:
        The column, and whether it is one of whole numbers.

    Raises:
        UsageError: there is no such column, or it holds no numbers, or not whole ones where these are wanted.
    """
    kind = _type_of(frame, name)
    if not isinstance(kind, T.NumericType):
        raise UsageError(f"column {name!r} is no number, so it weighs nothing")
    integral = isinstance(kind, T.IntegralType)
    if whole and not integral:
        raise UsageError(f"column {name!r} is {kind.simpleString()}, but bytes are whole numbers")
    is_whole = integral if whole is None else whole
    return quoted(name).cast("bigint" if is_whole else "double"), is_whole


def _type_of(frame: DataFrame, name: str) -> "T.DataType":
    if name not in frame.columns:
        raise UsageError(f"the frame has no column {name!r}; it has {', '.join(frame.columns)}")
    return frame.schema[name].dataType
