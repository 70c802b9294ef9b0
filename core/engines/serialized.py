"""Keys as clients send them, from the bytes that plans hash."""

from base64 import b64encode

import numpy as np
import pyarrow as pa

from adapt.core.keys.columns import KeyBytes, key_bytes
from adapt.core.stream import KeyType


def serialized(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as Kafka producers serialize them.

    Integers become 8 bytes big-endian, as by `LongSerializer`; other keys are unchanged.
    """
    if key_type is not KeyType.INT64:
        return keys
    turned = np.ascontiguousarray(keys.data.reshape(-1, 8)[:, ::-1]).reshape(-1)
    turned.flags.writeable = False
    return KeyBytes(turned, keys.offsets)


def as_text(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as text: integers in decimal, other keys unchanged."""
    if key_type is not KeyType.INT64 or len(keys.data) == 0:
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
