"""Zipf over finitely many ranks, exactly: the share of every rank, and draws by an indexed inverse."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled

MOST_RANKS = 100_000_000
"""The table of a domain takes 8 bytes a rank, so 0.8 GB at most."""

MOST_BUCKETS = 1 << 20

_RUN = 1 << 16

_NEAR = 8
"""Ranks that are tried one by one before they are searched, since few buckets have more."""


def zipf_shares(domain: int, exponent: float) -> Floats:
    """P(rank k) = k^-z / sum of j^-z over j = 1..domain; shape (domain,), rank 1 first.

    Unlike `numpy.random.Generator.zipf`, the ranks end at `domain` and any exponent from 0 (uniform) up will do.
    """
    weights = _weights(domain, exponent)
    shares: Floats = np.divide(weights, weights.sum(), out=weights)
    return shares


@dataclass(frozen=True, slots=True)
class RankTable:
    """Draws ranks: uniform numbers become ranks by the inverse of a cumulative distribution.

    The unit interval is cut into equal buckets; a guide holds the first rank each bucket can give. The rank is then
    searched between the ends of one bucket: O(1) on average, O(log domain) at worst.

    Attributes:
        cumulative: P(rank <= k), rising, the last one 1; shape (domain,).
        guide: How many ranks lie wholly at or below the start of each bucket, and of 1; shape (buckets + 1,). The
            number of buckets is a power of two, so that finding a number's bucket rounds nothing.
    """

    cumulative: Floats
    guide: NDArray[np.int32]

    @classmethod
    def from_cumulative(cls, cumulative: Floats) -> "RankTable":
        """Index a cumulative distribution."""
        buckets = min(MOST_BUCKETS, 1 << (len(cumulative) - 1).bit_length())
        starts = np.arange(buckets + 1) / buckets
        return cls(cumulative, np.searchsorted(cumulative, starts, side="right").astype(np.int32))

    def ranks(self, uniforms: Floats) -> NDArray[np.int64]:
        """The rank, from 1, of each number in [0, 1): the first whose cumulative share is above it. Shape (rows,)."""
        found = np.empty(len(uniforms), np.int64)
        _ranks(self.cumulative, self.guide, uniforms, found)
        return found


@lru_cache(maxsize=1)
def zipf_table(domain: int, exponent: float) -> RankTable:
    """The table that draws from a Zipf distribution; a process keeps the last one it made."""
    cumulative = _weights(domain, exponent)
    # summed in runs, so that the error grows with the length of a run and the number of runs, not with the domain
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
    for row in range(len(uniforms)):  # by itself, so that the processor fetches the places of many rows at once
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
