"""Chains of hybrid partitioners over a Zipf domain.

A construction places only the tracked keys. Load and migration of the others are those of the ring for all keys
(`hashing.py`), minus those of the tracked keys. So a step takes the construction and a few thousand keys, however large
the domain, and its numbers equal those of `compare_schemes`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.registry import CONSTRUCTIONS
from adapt.core.partitioning.measures.floors import r_best, r_best_pinned
from adapt.core.partitioning.measures.imbalance import max_over_mean, max_over_min, relative_imbalance
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.problem.tracking import epsilon_for, tracked_keys
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Construction, UtilityName
from paper.partitioning.domain import Domain
from paper.partitioning.hashing import LETTERS, Sums
from paper.partitioning.rings import ring_of

MOST_LISTED = 100_000
"""Largest number of hot keys to look at, which must include the tracked ones."""


@dataclass(frozen=True, slots=True)
class Step:
    """Metrics of one partitioner of a chain, over all keys.

    Attributes:
        channels: N.
        pinned_keys: Number of pinned keys.
        r: By letter, the busiest channel over the least busy (Eqs. 2, 4, 6); None if a channel is empty.
        m: By the letter of state, relative migration from the previous step (Eq. 12); None in the first.
        imbalance: Linear load of the busiest channel over the mean.
        r_best: Lowest r (L) of any placement of whole keys.
        r_best_pinned: Lowest r (L) with the pinned keys on any channel and the rest on the ring; None without pinned
            keys.
    """

    channels: int
    pinned_keys: int
    r: Mapping[str, float | None]
    m: Mapping[str, float] | None
    imbalance: float | None
    r_best: float | None
    r_best_pinned: float | None

    def b(self, letters: str, alpha: float = 1.2) -> float | None:
        """b (Eq. 11) by three letters: state, computation, network."""
        return relative_imbalance([self.r[letter] for letter in letters], [alpha] * 3)

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Step":
        """Step from the data of `as_data`."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parameters of the partitioners of a chain.

    Attributes:
        construction: Construction that places the tracked keys.
        letters: Resource functions of state, computation and network.
        alpha: The tolerance of each resource.
        sigma: Share of the tolerated imbalance left to untracked keys.
        utility: Utility function of balance and migration.
        track: Number of keys to track, instead of those that reach delta.
    """

    construction: Construction
    letters: str = "LCL"
    alpha: float = 1.2
    sigma: float = 0.1
    utility: UtilityName = UtilityName.APM
    track: int | None = None

    @property
    def resources(self) -> Resources:
        """Resources to balance."""
        return Resources.parse(self.letters, self.alpha, self.sigma)


def hashed_chain(sums: Sums, heaviest: Floats) -> list[Step]:
    """The steps of a scheme that hashes all keys.

    Args:
        sums: Load and migration of the scheme.
        heaviest: Counts of the hottest keys, descending; one per channel.
    """
    steps = []
    for at, channels in enumerate(sums.channels):
        loads = {letter: sums.loads[letter][at] for letter in LETTERS}
        moved = {letter: float(sums.moved[letter][at]) for letter in LETTERS} if at else None
        steps.append(_step(channels, loads, moved, heaviest, None))
    return steps


def hybrid_chain(domain: Domain, sums: Sums, recipe: Recipe, last: int) -> list[Step]:
    """Steps of a hybrid scheme, adding a channel at a time.

    From one channel to `last`; as `hybrid_steps`.
    """
    return [step for _, step in hybrid_steps(domain, sums, recipe, last)]


def hybrid_steps(domain: Domain, sums: Sums, recipe: Recipe, last: int) -> Iterator[tuple[Problem, Step]]:
    """Problem and result of each construction of a chain.

    Args:
        domain: The keys; only the hottest are generated.
        sums: Load and migration of the ring, from one channel to at least `last`, adding one at a time.
        recipe: Parameters of the partitioners.
        last: N of the last step.

    Raises:
        UsageError: more keys are tracked than looked at.
    """
    listed = domain.heaviest(_enough(domain, sums.total("L"), recipe, last), sums.total("L"))
    placed = _Placed.nowhere(listed)
    current: HybridPartitioner | None = None
    for at in range(last):
        ring = _ring(at + 1, domain.seed)
        tracked = tracked_keys(listed, recipe.resources, ring.channels, recipe.track)
        if len(tracked) == len(listed.keys) < domain.keys:
            raise UsageError(f"all {len(tracked)} keys looked at are tracked; look at more, or raise sigma")
        hashed = ring.channels_of(listed.keys)
        before, placed = placed, _Placed(hashed, hashed, 0)
        residual = {letter: placed.without(len(tracked), sums, at, listed, letter) for letter in LETTERS}
        rest = np.stack([residual[letter] for letter in recipe.letters])
        problem = Problem.from_counts(current or ring, ring, listed, tracked, recipe.resources, recipe.utility)
        problem = replace(problem, residual=partial(np.array, rest))
        chosen = CONSTRUCTIONS[recipe.construction](problem)
        current = HybridPartitioner(ExplicitMap(tracked, chosen), ring)
        placed = placed.with_explicit(chosen)
        loads = {letter: residual[letter] + placed.explicit_load(listed, letter, at + 1) for letter in LETTERS}
        moved = {letter: placed.moved_from(before, sums, at, listed, letter) for letter in LETTERS} if at else None
        counts = listed.count_low.astype(np.float64)
        yield problem, _step(at + 1, loads, moved, counts, (counts[: len(tracked)], residual["L"]))


@lru_cache(maxsize=128)
def _ring(channels: int, seed: int) -> ConsistentHash:
    """Cached ring by number of channels and seed, since all chains use the same ones."""
    with ring_of(seed):
        return ConsistentHash(channels)


def _enough(domain: Domain, total: float, recipe: Recipe, last: int) -> int:
    """Number of keys to list: all that may be tracked, or that predict the load of a quadratic resource.

    These reach ten times the error of a sufficient lossy counter, which is at most the lowest delta of the chain.
    """
    least = 10 * epsilon_for(recipe.resources, last, domain.keys)
    reaching = int(np.count_nonzero(domain.counts(0, min(MOST_LISTED, domain.keys)) >= least * total))
    return max(reaching, recipe.track or 0, last) + 1


@dataclass(frozen=True, slots=True)
class _Placed:
    """Channels of the listed keys under one partitioner.

    Attributes:
        hashed: Under its ring, shape (listed,).
        real: Under the partitioner, shape (listed,).
        explicit: Number of pinned keys, from the first.
    """

    hashed: Channels
    real: Channels
    explicit: int

    @classmethod
    def nowhere(cls, listed: Frequencies) -> "_Placed":
        none = np.zeros(len(listed.keys), np.int32)
        return cls(none, none, 0)

    def with_explicit(self, chosen: Channels) -> "_Placed":
        return _Placed(self.hashed, np.concatenate((chosen, self.hashed[len(chosen) :])), len(chosen))

    def without(self, tracked: int, sums: Sums, at: int, listed: Frequencies, letter: str) -> Floats:
        """Load of the untracked keys on each channel; shape (N,)."""
        weights = _weights(listed, letter)[:tracked]
        ring: Floats = sums.loads[letter][at]
        return ring - np.bincount(self.hashed[:tracked], weights, minlength=len(ring))

    def explicit_load(self, listed: Frequencies, letter: str, channels: int) -> Floats:
        """Load of the pinned keys on each channel; shape (channels,)."""
        weights = _weights(listed, letter)[: self.explicit]
        return np.bincount(self.real[: self.explicit], weights, minlength=channels).astype(np.float64, copy=False)

    def moved_from(self, before: "_Placed", sums: Sums, at: int, listed: Frequencies, letter: str) -> float:
        """State that migrates: that of the ring, corrected for the keys pinned before or after."""
        either = max(self.explicit, before.explicit)
        weights = _weights(listed, letter)[:either]
        hashed = weights[self.hashed[:either] != before.hashed[:either]].sum()
        real = weights[self.real[:either] != before.real[:either]].sum()
        return float(sums.moved[letter][at] - hashed + real)


def _weights(listed: Frequencies, letter: str) -> Floats:
    return ResourceFunction(letter).costs(listed.count_low)


def _step(
    channels: int,
    loads: Mapping[str, Floats],
    moved: Mapping[str, float] | None,
    heaviest: Floats,
    pair: tuple[Floats, Floats] | None,
) -> Step:
    linear, total = loads["L"], float(loads["L"].sum())
    ideal = {letter: float(loads[letter].sum()) / channels for letter in LETTERS}
    return Step(
        channels=channels,
        pinned_keys=0 if pair is None else len(pair[0]),
        r={letter: max_over_min(loads[letter]) for letter in LETTERS},
        m=None if moved is None else {letter: moved[letter] / ideal[letter] for letter in LETTERS},
        imbalance=max_over_mean(linear),
        r_best=r_best(heaviest[:channels], total, channels),
        r_best_pinned=None if pair is None else r_best_pinned(*pair),
    )
