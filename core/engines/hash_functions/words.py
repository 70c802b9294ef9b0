"""Words of 32 bits in compiled hash functions."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import inlined


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
