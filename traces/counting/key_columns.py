"""Columns as keys: their types, and how a trace stores them."""

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.stream import KeyType

KEY_TYPES = {
    **{kind: KeyType(str(kind)) for kind in (pa.string(), pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    pa.bool_(): KeyType.BOOLEAN,
    pa.date32(): KeyType.DATE,
    pa.timestamp("us", "UTC"): KeyType.TIMESTAMP,
    pa.timestamp("us"): KeyType.TIMESTAMP_NTZ,
}
"""Key types by the type of the column."""


def read_as(kind: pa.DataType) -> pa.DataType:
    """The type of a column in a trace that keeps it."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    if pa.types.is_dictionary(kind):
        return read_as(kind.value_type)
    if pa.types.is_unsigned_integer(kind):  # of 64 bits, as Spark reads them
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20)}[kind.bit_width]
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind


def stored_keys(values: pa.Array) -> pa.Array:
    """Keys as a trace stores them."""
    if pa.types.is_timestamp(values.type):
        texts = pc.replace_substring_regex(values.cast(pa.string()), r"(\.\d*?)0*Z?$", r"\1")
        return pc.replace_substring_regex(texts, r"\.$", "")
    return values.cast(KEY_TYPES[values.type].storage.value)
