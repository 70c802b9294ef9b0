"""MurmurHash3 x64 128 over a column of keys."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.columns import KeyBytes, Words

SEED = 0
"""The seed of every plan."""

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_MIX1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX2 = np.uint64(0xC4CEB9FE1A85EC53)
_ADD1 = np.uint64(0x52DCE729)
_ADD2 = np.uint64(0x38495AB5)
_FIVE = np.uint64(5)
_ALL = np.uint64(2**64 - 1)


def murmur3(keys: KeyBytes) -> tuple[Words, Words]:
    """The words h1, h2 of 128-bit hashes, each of shape (rows,).

    Same as `mmh3.hash64(key, seed=0, x64arch=True, signed=False)`, in that order.
    """
    h1 = np.empty(len(keys), np.uint64)
    h2 = np.empty(len(keys), np.uint64)
    _murmur3(keys.data, keys.offsets, h1, h2)
    return h1, h2


@inlined
def _rotated(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@inlined
def _word(data: NDArray[np.uint8], start: np.uint64) -> np.uint64:
    """The 8 bytes at `start`, little-endian; written so that it compiles to one load."""
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(data[start + np.uint64(place)]) << np.uint64(8 * place)
    return word


@inlined
def _part(data: NDArray[np.uint8], start: np.uint64, end: np.uint64) -> np.uint64:
    """The at most 8 bytes from `start` to `end`, little-endian."""
    if start < end and start + np.uint64(8) <= np.uint64(len(data)):
        return _word(data, start) & (_ALL >> (np.uint64(64) - np.uint64(8) * (end - start)))
    word = np.uint64(0)
    shift = np.uint64(0)
    while start < end:
        word |= np.uint64(data[start]) << shift
        start += np.uint64(1)
        shift += np.uint64(8)
    return word


@inlined
def _mixed_first(word: np.uint64) -> np.uint64:
    return _rotated(word * _C1, 31) * _C2


@inlined
def _mixed_second(word: np.uint64) -> np.uint64:
    return _rotated(word * _C2, 33) * _C1


@inlined
def _finished(word: np.uint64) -> np.uint64:
    """The avalanche: every input bit reaches every output bit."""
    word = (word ^ (word >> np.uint64(33))) * _MIX1
    word = (word ^ (word >> np.uint64(33))) * _MIX2
    return word ^ (word >> np.uint64(33))


@compiled
def _murmur3(data: NDArray[np.uint8], offsets: NDArray[np.int64], out1: Words, out2: Words) -> None:
    for row in range(len(out1)):
        start, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        length = end - start
        h1 = h2 = np.uint64(SEED)
        while end - start >= np.uint64(16):
            h1 = (_rotated(h1 ^ _mixed_first(_word(data, start)), 27) + h2) * _FIVE + _ADD1
            h2 = (_rotated(h2 ^ _mixed_second(_word(data, start + np.uint64(8))), 31) + h1) * _FIVE + _ADD2
            start += np.uint64(16)
        if end - start > np.uint64(8):
            h2 ^= _mixed_second(_part(data, start + np.uint64(8), end))
            h1 ^= _mixed_first(_word(data, start))
        else:
            h1 ^= _mixed_first(_part(data, start, end))
        h1 ^= length
        h2 ^= length
        h1 += h2
        h2 += h1
        h1, h2 = _finished(h1), _finished(h2)
        h1 += h2
        h2 += h1
        out1[row], out2[row] = h1, h2
