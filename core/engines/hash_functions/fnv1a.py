"""FNV-1a of 32 bits."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled
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
