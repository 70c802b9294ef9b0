"""Flink's hash of key columns: Java's hash code, mixed."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import OfBytes, compiled, inlined
from adapt.core.engines.hash_functions.java import array_codes, code_of_string, long_codes, string_codes
from adapt.core.engines.hash_functions.murmur3_32 import finished, mixed, word_at
from adapt.core.engines.placement import hash_of_column
from adapt.core.keys.columns import KeyBytes
from adapt.core.keys.typed_keys import narrowed
from adapt.core.stream import KeyType


def flink_hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Flink's hash, before modulo the key groups; shape (rows,), each >= 0.

    The key's hash code in Java (`String` or `Long`), mixed. Flink has no null or array keys; here null has hash code 0,
    as `Objects.hashCode`, and a binary key that of `Arrays.hashCode` (our decision, so that every key has a channel).

    Source: users and peers, section 5.1.
    """
    return mixed_codes(hash_codes(keys))


def hash_codes(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Java's `hashCode` of each `String`, `Long` or byte array; null has 0."""
    return hash_of_column(codes_of_bytes, keys, 0).view(np.int32)


def codes_of_bytes(keys: KeyBytes, key_type: KeyType) -> NDArray[np.int32]:
    """The same of keys as bytes, without nulls."""
    match key_type:
        case KeyType.STRING:
            return string_codes(keys)
        case KeyType.INT64:
            return long_codes(keys)
        case KeyType.INT8 | KeyType.INT16 | KeyType.INT32:
            return long_codes(narrowed(keys, "<i4"))  # a number itself
        case KeyType.BINARY:
            return array_codes(keys)
    return string_codes(keys)


def mixed_codes(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Hash codes as Flink mixes them, each >= 0."""
    hashes = np.empty(len(codes), np.int32)
    _mixed(codes, hashes)
    return hashes


@inlined
def _mixed_code(code: Any) -> Any:
    """One round of MurmurHash3 x86 32 with seed 0 over 4 bytes, made positive."""
    signed = np.int64(np.int32(finished(mixed(np.uint32(0), np.uint32(code)) ^ np.uint32(4))))
    # The absolute value; the minimum has none and becomes 0.
    return np.int32(0 if signed == -(2**31) else abs(signed))


@compiled
def _mixed(codes: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    for row in range(len(out)):
        out[row] = _mixed_code(codes[row])


def _of_text(data: NDArray[np.uint8], start: int, end: int) -> Any:
    return _mixed_code(code_of_string(data, start, end))


def _of_number(data: NDArray[np.uint8], start: int, end: int) -> Any:
    high = word_at(data, np.int64(start + 4)) if end - start > 4 else np.uint32(0)
    return _mixed_code(word_at(data, np.int64(start)) ^ high)


flink_hash_of_text = OfBytes(_of_text)
"""Flink's hash of one `String` in UTF-8."""

flink_hash_of_number = OfBytes(_of_number)
"""Flink's hash of one number of 4 or 8 bytes, little-endian."""
