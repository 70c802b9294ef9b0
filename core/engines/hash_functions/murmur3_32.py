"""MurmurHash3 x86 32 with its parts, and FNV-1a."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.columns import KeyBytes

_OFFSET = np.uint32(0x811C9DC5)
_PRIME = np.uint32(0x01000193)


def fnv1a(keys: KeyBytes) -> NDArray[np.uint32]:
    """The hash of each key."""
    hashes = np.empty(len(keys), np.uint32)
    _fnv1a(keys.data, keys.offsets, hashes)
    return hashes


@compiled
def _fnv1a(data: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.uint32]) -> None:
    for row in range(len(out)):
        state = _OFFSET
        for at in range(offsets[row], offsets[row + 1]):
            state = np.uint32((state ^ np.uint32(data[at])) * _PRIME)
        out[row] = state


@inlined
def rotated(word: np.uint32, bits: int) -> np.uint32:
    """The word, rotated to the left."""
    return np.uint32((word << np.uint32(bits)) | (word >> np.uint32(32 - bits)))


@inlined
def word_at(data: NDArray[np.uint8], start: np.int64) -> np.uint32:
    """The 4 bytes at `start`, little-endian."""
    word = np.uint32(0)
    for place in range(4):
        word |= np.uint32(data[start + place]) << np.uint32(8 * place)
    return word


@inlined
def part_at(data: NDArray[np.uint8], start: np.int64, end: np.int64) -> np.uint32:
    """The at most 4 bytes from `start` to `end`, little-endian."""
    word = np.uint32(0)
    shift = np.uint32(0)
    while start < end:
        word |= np.uint32(data[start]) << shift
        shift += np.uint32(8)
        start += 1
    return word


_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_ADD = np.uint32(0xE6546B64)
_MIX1 = np.uint32(0x85EBCA6B)
_MIX2 = np.uint32(0xC2B2AE35)


def murmur3_32(keys: KeyBytes) -> NDArray[np.uint32]:
    """The hash of each key; that of `mmh3.hash(key, 0, signed=False)`."""
    hashes = np.empty(len(keys), np.uint32)
    _murmur3_32(keys.data, keys.offsets, hashes)
    return hashes


@inlined
def scrambled(word: np.uint32) -> np.uint32:
    """A word before it is mixed into the state."""
    return np.uint32(rotated(np.uint32(word * _C1), 15) * _C2)


@inlined
def mixed(state: np.uint32, word: np.uint32) -> np.uint32:
    """The state after one more word."""
    return np.uint32(rotated(state ^ scrambled(word), 13) * np.uint32(5) + _ADD)


@inlined
def finished(word: np.uint32) -> np.uint32:
    """The avalanche: every input bit reaches every output bit."""
    word = np.uint32((word ^ (word >> np.uint32(16))) * _MIX1)
    word = np.uint32((word ^ (word >> np.uint32(13))) * _MIX2)
    return np.uint32(word ^ (word >> np.uint32(16)))


@compiled
def _murmur3_32(data: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.uint32]) -> None:
    for row in range(len(out)):
        start, end = offsets[row], offsets[row + 1]
        length = np.uint32(end - start)
        state = np.uint32(0)
        while end - start >= 4:
            state = mixed(state, word_at(data, start))
            start += 4
        if start < end:
            state ^= scrambled(part_at(data, start, end))
        out[row] = finished(state ^ length)
