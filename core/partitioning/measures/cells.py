"""Cells: the load of unlisted keys, by where hashers put them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

WEIGHT = ""
"""The name of what was counted, next to the names of measured columns."""


class Hasher(Protocol):
    """A fixed function from keys to 0 .. channels - 1."""

    @property
    def channels(self) -> int:
        """How many values it has."""

    def channels_of(self, keys: pa.Array) -> Channels:
        """The value of each key of a column."""


@dataclass(frozen=True, slots=True)
class RingReplicas:
    """Hasher to the replicas of a ring, in ring order.

    A ring with some of these replicas puts all keys of a replica on one channel.
    """

    ring: ConsistentHash

    @property
    def channels(self) -> int:
        """Number of replicas."""
        return len(self.ring.owners)

    def channels_of(self, keys: pa.Array) -> Channels:
        """The first replica at or after each key."""
        return self.ring.replicas_of(keys).astype(np.int32)

    def holds(self, ring: ConsistentHash) -> bool:
        """Whether this ring has all replicas of another."""
        own = self.ring
        return own.hash is ring.hash and ring.channels <= own.channels and ring.replicas <= own.replicas

    def replicas_on(self, ring: ConsistentHash) -> Channels:
        """The replica of each one's keys on a ring with fewer.

        In the order of that ring; shape (replicas,).
        """
        present = (self.ring.owners < ring.channels) & (self.ring.numbers < ring.replicas)
        following = np.where(present, np.cumsum(present) - 1, len(ring.owners))
        following = np.minimum.accumulate(following[::-1])[::-1]
        return np.asarray(following % len(ring.owners), np.int32)


Hashers: TypeAlias = tuple[Hasher, ...]
"""Hashers, for example those before and after a step; a cell is a value of each."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Load of unlisted keys in each cell: one value of each hasher."""

    hashers: Hashers
    # the cells with load: their numbers, the value of the last hasher running fastest; shape (cells,)
    at: NDArray[np.int64]
    # what these cells hold: the counted weight, as `WEIGHT`, and measured columns; shapes (cells,)
    loads: Mapping[str, Floats]

    def covers(self, hasher: Hasher) -> bool:
        """Whether the value of a hasher is known in each cell."""
        return any(_tells(each, hasher) for each in self.hashers)

    def placed(self, hasher: Hasher) -> Channels:
        """The value of a covered hasher in each cell; shape (cells,)."""
        number = next(place for place, each in enumerate(self.hashers) if _tells(each, hasher))
        values = np.unravel_index(self.at, [each.channels for each in self.hashers])[number].astype(np.int32)
        own = self.hashers[number]
        if own == hasher or not isinstance(own, RingReplicas):
            return values
        if isinstance(hasher, RingReplicas):
            return own.replicas_on(hasher.ring)[values]
        assert isinstance(hasher, ConsistentHash)
        return hasher.owners[own.replicas_on(hasher)[values]]


def _tells(hasher: Hasher, other: Hasher) -> bool:
    """Whether the value of a hasher decides that of another."""
    ring = other.ring if isinstance(other, RingReplicas) else other
    if isinstance(hasher, RingReplicas) and isinstance(ring, ConsistentHash):
        return hasher.holds(ring)
    return hasher == other


@dataclass(frozen=True, slots=True)
class RestSums:
    """Sums of unlisted keys, made as hashers are asked for."""

    # routes every row of a key that is not listed, once for all of some hashers
    route: Callable[[Sequence[Hashers]], Sequence[Cells]]
    known: list[Cells] = field(default_factory=list)  # the cells so far
    # the load of each channel in each window by a hasher, shape (channels, windows); None without windows
    by_window: Callable[[Hasher], Floats] | None = None

    def over(self, hashers: Sequence[Hasher]) -> Cells:
        """Cells that cover some hashers."""
        for cells in self.known:
            if all(cells.covers(each) for each in hashers):
                return cells
        self.ask([tuple(hashers)])
        return self.over(hashers)

    def ask(self, wanted: Sequence[Hashers]) -> None:
        """Make the cells of several groups of hashers in one pass."""
        self.known.extend(self.route(finest(wanted)))


def finest(wanted: Sequence[Hashers]) -> list[Hashers]:
    """Groups of hashers that cover those wanted.

    All rings of a hash are covered by the replicas of one.
    """
    of: dict[HashName, RingReplicas] = {}
    for ring in (each for hashers in wanted for each in map(_ring_in, hashers) if each is not None):
        most = of[ring.hash].ring if ring.hash in of else ring
        channels, replicas = max(most.channels, ring.channels), max(most.replicas, ring.replicas)
        of[ring.hash] = RingReplicas(ConsistentHash(channels, replicas, ring.hash))
    groups = []
    for hashers in wanted:
        as_rings = [(each, _ring_in(each)) for each in hashers]
        groups.append(tuple(dict.fromkeys(each if ring is None else of[ring.hash] for each, ring in as_rings)))
    return list(dict.fromkeys(groups))


def _ring_in(hasher: Hasher) -> ConsistentHash | None:
    ring = hasher.ring if isinstance(hasher, RingReplicas) else hasher
    return ring if isinstance(ring, ConsistentHash) else None


def base_of(placement: Hasher) -> Hasher:
    """What places the keys that are not pinned."""
    return placement.base if isinstance(placement, HybridPartitioner) else placement


def size_of(hashers: Hashers) -> int:
    """Number of cells, with or without load."""
    return math.prod(each.channels for each in hashers)


def cells_of(placed: Sequence[Channels], hashers: Hashers, keys: int) -> NDArray[np.int64]:
    """The cell of each key by its hashed values; shape (keys,)."""
    cells = np.zeros(keys, np.int64)
    for each, values in zip(hashers, placed, strict=True):
        cells = cells * each.channels + values
    return cells
