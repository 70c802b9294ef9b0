"""Lookup of the next among sorted 128-bit positions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.keys.columns import Words


@dataclass(frozen=True, slots=True)
class SortedPositions:
    """Sorted positions on a circle of 2^128, indexed by their leading bits.

    There are one to two buckets per position, so a lookup skips less than one position on average.
    """

    high: Words  # high words, ascending; shape (positions,)
    low: Words  # low words, ascending where high words are equal; shape (positions,)
    starts: NDArray[np.int64]  # the first position at or after the start of each bucket; shape (buckets,), int64
    shift: np.uint64  # a position's bucket is its high word shifted right by this

    @classmethod
    def from_sorted(cls, high: Words, low: Words) -> "SortedPositions":
        """Index sorted positions, at least one."""
        bits = max(1, len(high).bit_length())
        shift = np.uint64(64 - bits)
        starts = np.searchsorted(high, np.arange(2**bits, dtype=np.uint64) << shift)
        return cls(high, low, starts.astype(np.int64), shift)

    def first_at_or_after(self, high: Words, low: Words) -> NDArray[np.int64]:
        """The first position at or after each given one, wrapping around.

        O(1) per row if positions are evenly spread.
        """
        found = np.empty(len(high), np.int64)
        _first_at_or_after(self.high, self.low, self.starts, self.shift, high, low, found)
        return found


@compiled
def _first_at_or_after(
    highs: Words,
    lows: Words,
    starts: NDArray[np.int64],
    shift: np.uint64,
    high: Words,
    low: Words,
    found: NDArray[np.int64],
) -> None:
    for row in range(len(found)):
        at = starts[high[row] >> shift]
        while at < len(highs) and (highs[at] < high[row] or (highs[at] == high[row] and lows[at] < low[row])):
            at += 1
        found[row] = at if at < len(highs) else 0
