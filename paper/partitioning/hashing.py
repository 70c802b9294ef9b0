"""Load and migration of pure hashing, summed over a domain in blocks.

The ring places untracked keys in every construction, so these sums are computed once per domain; a construction only
adds the changes of its tracked keys (`chains.py`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.resources import ResourceFunction
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.names import Scheme
from paper.partitioning.domain import Domain, blocks
from paper.partitioning.rings import ring_of

LETTERS = tuple(function.value for function in ResourceFunction)


@dataclass(frozen=True, slots=True)
class Sums:
    """Loads of channels and migrated state over some ranks.

    Sums of parts add up.

    All are sums of integers below 2^53, so neither the parts nor their order change a digit.

    Attributes:
        channels: Channel counts N, in order.
        loads: By letter of the resource function, the load of each channel for each N; shapes (N,).
        moved: By letter, the state that changes its channel from the previous channel count, 0 for the first; shape
            (channel counts,).
    """

    channels: tuple[int, ...]
    loads: Mapping[str, tuple[Floats, ...]]
    moved: Mapping[str, Floats]

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            self.channels,
            {f: tuple(a + b for a, b in zip(self.loads[f], other.loads[f], strict=True)) for f in LETTERS},
            {f: self.moved[f] + other.moved[f] for f in LETTERS},
        )

    def total(self, letter: str) -> float:
        """Total load of all keys."""
        return float(self.loads[letter][0].sum())

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        loads = {letter: [each.tolist() for each in self.loads[letter]] for letter in LETTERS}
        moved = {letter: self.moved[letter].tolist() for letter in LETTERS}
        return {"channels": list(self.channels), "loads": loads, "moved": moved}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Sums":
        """Sums from the data of `as_data`."""
        loads = {letter: tuple(np.array(each) for each in data["loads"][letter]) for letter in LETTERS}
        return cls(tuple(data["channels"]), loads, {letter: np.array(data["moved"][letter]) for letter in LETTERS})


def hashed_sums(
    keys: int,
    seed: int,
    skews: Sequence[float],
    scheme: Scheme,
    channels: Sequence[int],
    first: int,
    last: int,
    max_parallelism: int | None = None,
) -> list[Sums]:
    """Sums of a hashing scheme over ranks, for several skews.

    Routes do not depend on the skew, so keys are routed once for all skews, in the memory of one block.

    Args:
        keys: |D|.
        seed: Seed of the keys and the ring.
        skews: z of each domain.
        scheme: A scheme that needs no counts.
        channels: Channel counts, in order.
        first: The first rank, from 0.
        last: The rank after the last.
        max_parallelism: Number of key groups, for schemes with key groups.
    """
    domains = [Domain(keys, skew, seed) for skew in skews]
    with ring_of(seed):
        partitioners = [make_partitioner(scheme, count, max_parallelism=max_parallelism) for count in channels]
    found = [_nothing(channels) for _ in domains]
    for start, end in blocks(first, last):
        placed = _placed(partitioners, domains[0], start, end)
        for at, domain in enumerate(domains):
            found[at] = found[at] + _of_block(channels, placed, domain.counts(start, end))
    return found


def _placed(partitioners: Sequence[Partitioner], domain: Domain, start: int, end: int) -> list[Channels]:
    names = domain.names(start, end)
    return [partitioner.channels_of(names) for partitioner in partitioners]


def _of_block(channels: Sequence[int], placed: Sequence[Channels], counts: Floats) -> Sums:
    weights = {function.value: function.costs(counts) for function in ResourceFunction}
    changes = [None, *(before != after for before, after in pairwise(placed))]
    return Sums(
        tuple(channels),
        {
            letter: tuple(_added(owners, weight, count) for owners, count in zip(placed, channels, strict=True))
            for letter, weight in weights.items()
        },
        {
            letter: np.array([0.0 if change is None else float(weight[change].sum()) for change in changes])
            for letter, weight in weights.items()
        },
    )


def _added(owners: Channels, weights: Floats, channels: int) -> Floats:
    return np.bincount(owners, weights, minlength=channels).astype(np.float64, copy=False)


def _nothing(channels: Sequence[int]) -> Sums:
    loads = tuple(np.zeros(count) for count in channels)
    return Sums(tuple(channels), dict.fromkeys(LETTERS, loads), dict.fromkeys(LETTERS, np.zeros(len(channels))))
