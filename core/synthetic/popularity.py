"""Which key has which rank, and when: ranks that drift, and keys that live for a time before fresh ones follow."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.errors import UsageError
from adapt.core.random_bits import substream, uniforms

Ranks = NDArray[np.int64]

DRIFTING_RANKS = 4096
"""The heaviest ranks, among which keys drift; further down nobody could tell."""

MOST_DRIFTS = 200_000

_DRIFT, _LIFE = 2, 3
"""Substreams of a seed."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Keys that change their ranks, all at once and again and again.

    Each time, each of the first `DRIFTING_RANKS` ranks is drawn with a probability, and the key that has it changes
    places with that of another rank of them, the logarithm of which is uniform.

    Attributes:
        every_s: Seconds between two such times, above 0.
        share: The probability of a rank to be drawn, in (0, 1].

    Raises:
        UsageError: an attribute is out of its range.
    """

    every_s: float
    share: float = 0.1

    def __post_init__(self) -> None:
        if not (self.every_s > 0 and math.isfinite(self.every_s)):
            raise UsageError("--drift is 0, but ranks stay for a time before they drift")
        if not 0 < self.share <= 1:
            raise UsageError(f"--drift-share is {self.share:.6g}, but it is above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class KeyLife:
    """Keys that live equally long; each is followed in its rank by a key that was never there before.

    Attributes:
        seconds: How long a key lives, above 0; those of the first rows are somewhere in their lives.

    Raises:
        UsageError: it is 0.
    """

    seconds: float

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise UsageError("--key-life is 0, but a key lives for a time")


def drifted(ranks: Ranks, times_s: Floats, domain: int, drift: Drift, seed: int) -> Ranks:
    """The key, 1 to domain, that has each rank at its time; shape (rows,).

    Before the first drift the key of rank k is k.

    Args:
        ranks: 1 to domain, shape (rows,).
        times_s: Sorted, from 0, shape (rows,).

    Raises:
        UsageError: there are more than `MOST_DRIFTS` drifts before the last row.
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
    """Refuse more drifts than can be followed.

    Raises:
        UsageError: there are more than `MOST_DRIFTS` until a time.
    """
    if until_s / drift.every_s > MOST_DRIFTS:
        raise UsageError(
            f"ranks would drift {until_s / drift.every_s:,.0f} times, over {MOST_DRIFTS:,}; let them do so more rarely"
        )


def lived(keys: Ranks, times_s: Floats, domain: int, life: KeyLife, seed: int) -> Ranks:
    """The keys that follow each other in each place: key k, then k + domain, k + 2 domain and so on; shape (rows,)."""
    ages = uniforms(substream(seed, _LIFE), keys)
    return keys + domain * np.floor(times_s / life.seconds + ages).astype(np.int64)


class _Held:
    """The keys of the heaviest ranks, as of the last epoch that was asked for."""

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
    """The key of each of the first ranks after so many drifts; later epochs go on from the last one asked for."""
    held = _held(ranks, share, seed)
    if held.epoch > epoch:
        _held.cache_clear()
        held = _held(ranks, share, seed)
    return held.at(epoch)


@compiled
def _exchange(keys: Ranks, drawn: Floats, share: float) -> None:
    ranks = len(keys)
    for rank in range(ranks):
        if drawn[rank] < share:
            other = min(int(math.exp(drawn[ranks + rank] * math.log(ranks + 1.0))), ranks) - 1
            keys[rank], keys[other] = keys[other], keys[rank]
