"""Made-up keys that represent the keys that were not listed."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from adapt.core.keys.columns import Words, key_type_of
from adapt.core.random_bits import mix
from adapt.core.stream import KeyType

_PREFIX = "\x1astand-in\x1a"
"""Prefix of the 16 hex digits of a text; its control characters are rare in real keys."""

_OFFSET = np.uint64(0x243F6A8885A308D3)
"""Pi, so that no other mixed numbers from 0 up are the same."""


@lru_cache(maxsize=2)
def stand_in_keys(kind: pa.DataType, number: int) -> pa.Array:
    """Distinct keys of an Arrow type, always the same.

    A longer list begins with a shorter one.

    That one of them is a real key is as unlikely as a hit of a random 64-bit number.

    Args:
        kind: string, int64 or binary, with offsets of 32 or 64 bits.
        number: How many; shape (number,). Cached, since a chain of plans is measured on the same keys.
    """
    words = mix(np.arange(number, dtype=np.uint64) + _OFFSET)
    if key_type_of(kind) is KeyType.INT64:
        return pa.array(words.view(np.int64))
    return _as_texts(words, kind)


def _as_texts(words: Words, kind: pa.DataType) -> pa.Array:
    """Each number as the prefix and 16 hex digits."""
    prefix = np.frombuffer(_PREFIX.encode(), np.uint8)
    width = len(prefix) + 16
    letters = np.empty((len(words), width), np.uint8)
    letters[:, : len(prefix)] = prefix
    numbers = words.astype(">u8").view(np.uint8).reshape(-1, 8)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    letters[:, len(prefix) :: 2], letters[:, len(prefix) + 1 :: 2] = digits[numbers >> 4], digits[numbers & 15]
    offsets = np.arange(len(words) + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(words), buffers).cast(kind)
