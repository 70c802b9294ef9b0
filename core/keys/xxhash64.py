"""xxHash64 over a column of keys."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.columns import KeyBytes, Words

SEED = 42
"""The seed of Spark's `xxhash64` and of every plan."""

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_SEED = np.uint64(SEED)
_FIRST = np.uint64((SEED + 0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) % 2**64)
_LAST = np.uint64((SEED - 0x9E3779B185EBCA87) % 2**64)


def xxhash64(keys: KeyBytes) -> Words:
    """The unsigned hash of each key, shape (rows,); that of `xxhash.xxh64_intdigest(key, seed=42)`.

    Read as a signed number it is Spark's `xxhash64(key)` of a string, binary or bigint column, except for nulls:
    Spark skips a null and returns the seed, where here it is the empty key.
    """
    hashes = np.empty(len(keys), np.uint64)
    _xxhash64(keys.data, keys.offsets, hashes)
    return hashes


@inlined
def _rotated(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@inlined
def _little(data: NDArray[np.uint8], start: np.uint64, length: int) -> np.uint64:
    """The `length` bytes at `start`, little-endian; for a fixed length it compiles to one load."""
    word = np.uint64(0)
    for place in range(length):
        word |= np.uint64(data[start + np.uint64(place)]) << np.uint64(8 * place)
    return word


@inlined
def _round(state: np.uint64, word: np.uint64) -> np.uint64:
    return _rotated(state + word * _P2, 31) * _P1


@inlined
def _merged(state: np.uint64, lane: np.uint64) -> np.uint64:
    return (state ^ _round(np.uint64(0), lane)) * _P1 + _P4


@inlined
def _stripes(data: NDArray[np.uint8], start: np.uint64, end: np.uint64) -> np.uint64:
    """The state after all whole stripes of 32 bytes, each taken by four lanes."""
    lane1, lane2, lane3, lane4 = _FIRST, _SEED + _P2, _SEED, _LAST
    while end - start >= np.uint64(32):
        lane1 = _round(lane1, _little(data, start, 8))
        lane2 = _round(lane2, _little(data, start + np.uint64(8), 8))
        lane3 = _round(lane3, _little(data, start + np.uint64(16), 8))
        lane4 = _round(lane4, _little(data, start + np.uint64(24), 8))
        start += np.uint64(32)
    state = _rotated(lane1, 1) + _rotated(lane2, 7) + _rotated(lane3, 12) + _rotated(lane4, 18)
    return _merged(_merged(_merged(_merged(state, lane1), lane2), lane3), lane4)


@inlined
def _finished(word: np.uint64) -> np.uint64:
    """The avalanche: every input bit reaches every output bit."""
    word = (word ^ (word >> np.uint64(33))) * _P2
    word = (word ^ (word >> np.uint64(29))) * _P3
    return word ^ (word >> np.uint64(32))


@compiled
def _xxhash64(data: NDArray[np.uint8], offsets: NDArray[np.int64], out: Words) -> None:
    for row in range(len(out)):
        start, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        length = end - start
        state = _stripes(data, start, end) if length >= np.uint64(32) else _SEED + _P5
        state += length
        start += length & ~np.uint64(31)
        while end - start >= np.uint64(8):
            state = _rotated(state ^ _round(np.uint64(0), _little(data, start, 8)), 27) * _P1 + _P4
            start += np.uint64(8)
        if end - start >= np.uint64(4):
            state = _rotated(state ^ (_little(data, start, 4) * _P1), 23) * _P2 + _P3
            start += np.uint64(4)
        while start < end:
            state = _rotated(state ^ (np.uint64(data[start]) * _P5), 11) * _P1
            start += np.uint64(1)
        out[row] = _finished(state)
