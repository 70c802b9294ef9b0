"""Spark SQL's `hash` of key columns, a variant of MurmurHash3."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.columns import key_bytes, one_array

SEED = 42
"""The seed of Spark's `hash` and of its hash partitioning; the hash of null."""

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_ADD = np.uint32(0xE6546B64)
_MIX1 = np.uint32(0x85EBCA6B)
_MIX2 = np.uint32(0xC2B2AE35)


def spark_hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Spark SQL's `hash(key)` of a string, binary or bigint column; shape (rows,).

    Strings are hashed as UTF-8. Unlike in the standard function, each byte after the last word of four is sign-extended
    and mixed as a word. Null gives the seed. Integers are hashed as bigint; Spark gives the same value in an int column
    another hash.

    Raises:
        ValueError: the column is none of string, int64 and binary.

    Source: users and peers, section 5.1; tested against Spark.
    """
    column = one_array(keys)
    found = key_bytes(column)
    hashes = np.empty(len(found), np.int32)
    _spark_hash(found.data, found.offsets, hashes)
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = SEED
    return hashes


def hash_of_bytes(key: bytes) -> int:
    """Spark's hash of one key, not null, as bytes.

    UTF-8 of text, 8 bytes little-endian of an integer.
    """
    found = np.empty(1, np.int32)
    _spark_hash(np.frombuffer(key, np.uint8), np.array([0, len(key)], np.int64), found)
    return int(found[0])


@inlined
def _rotated(word: np.uint32, bits: int) -> np.uint32:
    return np.uint32((word << np.uint32(bits)) | (word >> np.uint32(32 - bits)))


@inlined
def _word(data: NDArray[np.uint8], start: np.int64) -> np.uint32:
    """The 4 bytes at `start`, little-endian."""
    word = np.uint32(0)
    for place in range(4):
        word |= np.uint32(data[start + place]) << np.uint32(8 * place)
    return word


@inlined
def _mixed(state: np.uint32, word: np.uint32) -> np.uint32:
    """The state after one more word."""
    state ^= np.uint32(_rotated(np.uint32(word * _C1), 15) * _C2)
    return np.uint32(_rotated(state, 13) * np.uint32(5) + _ADD)


@inlined
def _finished(word: np.uint32) -> np.uint32:
    """The avalanche: every input bit reaches every output bit."""
    word = np.uint32((word ^ (word >> np.uint32(16))) * _MIX1)
    word = np.uint32((word ^ (word >> np.uint32(13))) * _MIX2)
    return np.uint32(word ^ (word >> np.uint32(16)))


@compiled
def _spark_hash(data: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    for row in range(len(out)):
        start, end = offsets[row], offsets[row + 1]
        length = np.uint32(end - start)
        state = np.uint32(SEED)
        while end - start >= 4:
            state = _mixed(state, _word(data, start))
            start += 4
        while start < end:
            state = _mixed(state, np.uint32(np.int32(np.int8(data[start]))))
            start += 1
        out[row] = np.int32(_finished(state ^ length))
