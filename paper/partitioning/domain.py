"""Exact Zipf domains: integer counts by rank, generated in blocks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies, key_order

TUPLES_A_KEY = 10
"""Tuples per key of a stream. Integer counts make every sum exact in any order, and ties between keys as common as in a
counted stream."""

BLOCK = 1 << 20
"""Ranks per block."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Keys of a Zipf stream, for each seed its own.

    Attributes:
        keys: |D|.
        skew: z; rank k has a share proportional to k^-z.
        seed: The first key is `seed * keys`, the next ones follow; keys are integers.
    """

    keys: int
    skew: float
    seed: int

    def names(self, first: int, last: int) -> pa.Array:
        """Keys of a range of ranks; shape (last - first,).

        From `first` to before `last`, counted from 0.
        """
        return pa.array(np.arange(first, last) + self.seed * self.keys)

    def counts(self, first: int, last: int) -> Floats:
        """Tuples of a range of ranks; shape (last - first,).

        Not ascending, at least 1.
        """
        ranks = np.arange(first + 1, last + 1, dtype=np.float64)
        scale = TUPLES_A_KEY * self.keys / _weight_of_all(self.keys, self.skew)
        return np.maximum(np.rint(scale * ranks**-self.skew), 1.0)

    def heaviest(self, most: int, total: float) -> Frequencies:
        """The hottest keys only, in an exact counter's order.

        Args:
            most: About how many; ties with the last one are included.
            total: Tuples of the whole stream.
        """
        listed = min(most, self.keys)
        looked_at = listed
        while True:
            looked_at = min(2 * looked_at, self.keys)
            counts = self.counts(0, looked_at)
            tied = int(np.count_nonzero(counts >= counts[listed - 1]))
            if tied < looked_at or looked_at == self.keys:
                return self._counted(tied, counts[:tied], total)

    def whole(self) -> Frequencies:
        """All keys with exact counts, for domains that fit in memory."""
        counts = self.counts(0, self.keys)
        return self._counted(self.keys, counts, float(counts.sum()))

    def _counted(self, listed: int, counts: Floats, total: float) -> Frequencies:
        keys = self.names(0, listed)
        order = pa.array(key_order(keys, counts))
        return Frequencies(keys.take(order), counts, counts, total, round(total), distinct=self.keys)


def blocks(first: int, last: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    """A range of ranks in pieces of at most `size`."""
    for start in range(first, last, size):
        yield start, min(start + size, last)


@lru_cache(maxsize=64)
def _weight_of_all(keys: int, skew: float) -> float:
    """The sum of k^-z over all ranks, identical on every machine."""
    pieces = blocks(0, keys)
    return math.fsum(float((np.arange(start + 1, end + 1, dtype=np.float64) ** -skew).sum()) for start, end in pieces)
