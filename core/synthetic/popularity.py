"""Popularity of keys: Zipf, self-similar, drifting, short-lived."""

import math
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.counting.zipf import MOST_RANKS, zipf_table
from adapt.core.random_bits import substream, uniforms
from adapt.core.synthetic.variation import Drift
from adapt.core.units.settings import Range, SettingError, knob, settings

Ranks = NDArray[np.int64]

DRIFTING_RANKS = 4096
"""Hottest ranks, among which keys drift; changes further down would not be noticed."""

MOST_DRIFTS = 200_000

_DRIFT, _LIFE = 2, 3
"""Substreams of a seed."""


def drifted(ranks: Ranks, times_s: Floats, domain: int, drift: Drift, seed: int) -> Ranks:
    """The key, from 1 to domain, of each rank; shape (rows,).

    Before the first drift the key of rank k is k.

    Args:
        ranks: 1 to domain, shape (rows,).
        times_s: Sorted, from 0, shape (rows,).
    """
    keys = ranks.copy()
    if not len(ranks):
        return keys
    epochs = (times_s // drift.every_s).astype(np.int64)
    check_drifts(float(times_s[-1]), drift)
    bounds = np.flatnonzero(np.diff(epochs)) + 1
    for first, end in zip([0, *bounds.tolist()], [*bounds.tolist(), len(ranks)], strict=True):
        held = _keys_of_ranks(int(epochs[first]), min(domain, DRIFTING_RANKS), drift.share, seed)
        some = keys[first:end]
        high = some <= len(held)
        some[high] = held[some[high] - 1]
    return keys


def check_drifts(until_s: float, drift: Drift) -> None:
    """Check that the number of drifts is feasible."""
    if until_s / drift.every_s > MOST_DRIFTS:
        raise SettingError(
            Drift,
            f"{{every_s}} would change ranks {until_s / drift.every_s:,.0f} times, more than {MOST_DRIFTS:,};"
            " increase it",
        )


def lived(keys: Ranks, times_s: Floats, domain: int, life_s: float, seed: int) -> Ranks:
    """Successors of keys over time; shape (rows,).

    Key k is followed by k + domain, k + 2 domain and so on.
    """
    ages = uniforms(substream(seed, _LIFE), keys)
    return keys + domain * np.floor(times_s / life_s + ages).astype(np.int64)


class _Held:
    """Keys of the hottest ranks, as of the last requested epoch."""

    def __init__(self, ranks: int, share: float, seed: int) -> None:
        self.epoch, self._share, self._stream = 0, share, substream(seed, _DRIFT)
        self.keys = np.arange(1, ranks + 1)

    def at(self, epoch: int) -> Ranks:
        while self.epoch < epoch:
            self.epoch += 1
            first = 2 * len(self.keys) * self.epoch
            drawn = uniforms(self._stream, np.arange(first, first + 2 * len(self.keys)))
            _exchange(self.keys, drawn, self._share)
        return self.keys


@lru_cache(maxsize=1)
def _held(ranks: int, share: float, seed: int) -> _Held:
    return _Held(ranks, share, seed)


def _keys_of_ranks(epoch: int, ranks: int, share: float, seed: int) -> Ranks:
    """Key of each of the first ranks after a number of drifts, continued from the last requested epoch."""
    with _continuing:  # threads make blocks of one stream
        held = _held(ranks, share, seed)
        if held.epoch > epoch:
            _held.cache_clear()
            held = _held(ranks, share, seed)
        return held.at(epoch).copy()


_continuing = Lock()


@compiled
def _exchange(keys: Ranks, drawn: Floats, share: float) -> None:
    ranks = len(keys)
    for rank in range(ranks):
        if drawn[rank] < share:
            other = min(int(math.exp(drawn[ranks + rank] * math.log(ranks + 1.0))), ranks) - 1
            keys[rank], keys[other] = keys[other], keys[rank]


@settings()
class ZipfKeys:
    """Zipf keys, with shares proportional to rank^-z.

    A process that draws rows holds 8 bytes per key.
    """

    domain: int = knob("Number of keys.", default=1_000_000, typed="keys", range=Range(1, at_most=MOST_RANKS))
    exponent: float = knob("z; 0 is uniform.", default=1.0, range=Range(0))

    def ranks(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Rank, from 1, of each number in [0, 1); shape (rows,)."""
        return zipf_table(self.domain, self.exponent).ranks(uniforms)


MOST_KEYS = 1 << 53

_HOT = 0.2
"""Share of self-similar keys, h."""


@settings()
class SelfSimilarKeys:
    """Self-similar keys, with the same hot share at every scale.

    The share h = 0.2 of the hottest keys gets the share 1 - h of the rows.

    Source: Gray, Sundaresan, Englert, Baclawski and Weinberger, Quickly generating billion-record synthetic databases,
    SIGMOD 1994, section 3.2.
    """

    domain: int = knob("Number of keys.", default=1_000_000, typed="keys", range=Range(1, at_most=MOST_KEYS))

    def ranks(self, uniforms: Floats) -> NDArray[np.int64]:
        """Rank, from 1, of each number in [0, 1); shape (rows,).

        The rank of u is 1 + floor(N u^(ln h / ln (1 - h))).
        """
        power = math.log(_HOT) / math.log1p(-_HOT)
        found = (self.domain * uniforms**power).astype(np.int64)
        return np.minimum(found, self.domain - 1) + 1
