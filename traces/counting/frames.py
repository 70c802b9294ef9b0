"""Key and amount columns of any Spark DataFrame."""

from adapt.core.engines.spark.export import spark_key_type, stored_key_sql
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.stream import KeyType
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, F, T


def key_column(frame: DataFrame, name: str) -> tuple[Column, KeyType]:
    """A column of keys as counts store them, with its type."""
    key_type, column = key_type_in(frame.schema, name), "`" + name.replace("`", "``") + "`"
    return F.expr(stored_key_sql(key_type).format(column)), key_type


def key_type_in(schema: "T.StructType", name: str) -> KeyType:
    """The key type of a column."""
    kind = _type_of(schema, name)
    key_type = spark_key_type(kind.simpleString())
    if key_type is None:
        raise UsageError(
            f"key column {name!r} must be text, binary, whole numbers, decimals, dates or times (got"
            f" {kind.simpleString()})"
        )
    return key_type


def amount_column(frame: DataFrame, name: str, *, whole: bool | None = None) -> tuple[Column, bool]:
    """A column of amounts: integers as bigint, others as double.

    Args:
        whole: Whether to return integers; None keeps the kind of the column.

    Returns:
        The column, and whether it holds integers.
    """
    is_whole = is_whole_in(frame.schema, name, whole=whole)
    return quoted(name).cast("bigint" if is_whole else "double"), is_whole


def is_whole_in(schema: "T.StructType", name: str, *, whole: bool | None = None) -> bool:
    """Whether a column of amounts is taken as integers."""
    kind = _type_of(schema, name)
    if not isinstance(kind, T.NumericType):
        raise UsageError(f"column {name!r} must be numeric (got {kind.simpleString()})")
    integral = isinstance(kind, T.IntegralType)
    if whole and not integral:
        raise UsageError(f"column {name!r} must be integers, as it counts bytes (got {kind.simpleString()})")
    return integral if whole is None else whole


def _type_of(schema: "T.StructType", name: str) -> "T.DataType":
    if name not in schema.names:
        raise UsageError(f"column {name!r} does not exist{did_you_mean(name, schema.names)}")
    return schema[name].dataType
