"""Finite Zipf distributions: exact shares and random draws."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled

MOST_RANKS = 100_000_000
"""The largest domain; its table has 8 bytes per rank, 0.8 GB."""

MOST_BUCKETS = 1 << 20

_RUN = 1 << 16

_NEAR = 8
"""Ranks tried in sequence before a binary search; few buckets have more."""


def zipf_shares(domain: int, exponent: float) -> Floats:
    """P(rank k), proportional to k^-z, for k = 1..domain; shape (domain,).

    Unlike `numpy.random.Generator.zipf`, ranks end at `domain`, and any exponent >= 0 is allowed (0: uniform).
    """
    weights = _weights(domain, exponent)
    shares: Floats = np.divide(weights, weights.sum(), out=weights)
    return shares


@dataclass(frozen=True, slots=True)
class RankTable:
    """Draws ranks by the inverse of a cumulative distribution.

    The unit interval is cut into equal buckets; a guide holds the first rank of each. The rank is then searched within
    one bucket: O(1) on average, O(log domain) at worst.
    """

    cumulative: Floats  # P(rank <= k), ascending to 1; shape (domain,)
    # the number of ranks entirely below the start of each bucket, and of 1; shape (buckets + 1,). There is a power of
    # two of buckets, so finding one does not round
    guide: NDArray[np.int32]

    @classmethod
    def from_cumulative(cls, cumulative: Floats) -> "RankTable":
        """Index a cumulative distribution."""
        buckets = min(MOST_BUCKETS, 1 << (len(cumulative) - 1).bit_length())
        starts = np.arange(buckets + 1) / buckets
        return cls(cumulative, np.searchsorted(cumulative, starts, side="right").astype(np.int32))

    def ranks(self, uniforms: Floats) -> NDArray[np.int64]:
        """The rank, from 1, of each number in [0, 1); shape (rows,)."""
        found = np.empty(len(uniforms), np.int64)
        _ranks(self.cumulative, self.guide, uniforms, found)
        return found


@lru_cache(maxsize=1)
def zipf_table(domain: int, exponent: float) -> RankTable:
    """The table of a Zipf distribution; the last one is cached."""
    cumulative = _weights(domain, exponent)
    # summed in runs, so the error grows with run length and number of runs, not with the domain
    before = 0.0
    for first in range(0, domain, _RUN):
        run = cumulative[first : first + _RUN]
        np.cumsum(run, out=run)
        run += before
        before = float(run[-1])
    cumulative /= before
    return RankTable.from_cumulative(cumulative)


def _weights(domain: int, exponent: float) -> Floats:
    weights = np.arange(1, domain + 1, dtype=np.float64)
    return np.power(weights, -exponent, out=weights)


@compiled
def _ranks(cumulative: Floats, guide: NDArray[np.int32], uniforms: Floats, found: NDArray[np.int64]) -> None:
    buckets = len(guide) - 1
    for row in range(len(uniforms)):  # a separate loop, so the processor fetches many rows at once
        found[row] = guide[int(uniforms[row] * buckets)]
    for row in range(len(uniforms)):
        uniform, low = uniforms[row], found[row]
        near = low + _NEAR
        while low < near and cumulative[low] <= uniform:
            low += 1
        if low == near:
            high = np.int64(guide[int(uniform * buckets) + 1])
            while low < high:
                middle = (low + high) >> 1
                if cumulative[middle] > uniform:
                    high = middle
                else:
                    low = middle + 1
        found[row] = low + 1
