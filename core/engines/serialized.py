"""Keys as clients send them, from the bytes that plans hash."""

from base64 import b64encode

import pyarrow as pa

from adapt.core.keys.columns import KeyBytes, key_bytes
from adapt.core.keys.typed_keys import narrowed
from adapt.core.stream import KeyType

WIDTHS = {KeyType.INT64: 8, KeyType.INT32: 4, KeyType.INT16: 2}
"""Bytes of integers with a serializer."""


def serialized(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as Kafka producers serialize them.

    Integers become 8, 4 or 2 bytes big-endian, as by `LongSerializer`, `IntegerSerializer` or `ShortSerializer`; int8,
    which has no serializer, decimal text; other keys are unchanged.
    """
    if key_type in WIDTHS:
        return narrowed(keys, f">i{WIDTHS[key_type]}")
    return as_text(keys, key_type)


def as_text(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as text: integers in decimal, other keys unchanged."""
    if key_type.storage is not KeyType.INT64 or len(keys.data) == 0:
        return keys
    texts = key_bytes(pa.array(keys.data.view("<i8")).cast(pa.large_string()))
    return KeyBytes(texts.data, texts.offsets[keys.offsets // 8])


def as_base64(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as text, binary ones in Base64."""
    if key_type is not KeyType.BINARY:
        return as_text(keys, key_type)
    data, ends = keys.data.tobytes(), keys.offsets.tolist()
    texts = [b64encode(data[ends[row] : ends[row + 1]]) for row in range(len(keys))]
    return key_bytes(pa.array(texts, pa.large_binary()))
