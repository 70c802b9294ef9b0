"""MurmurHash3 x86 32, seed 0, and its parts."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.engines.hash_functions.words import part_at, rotated, word_at
from adapt.core.keys.columns import KeyBytes

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
