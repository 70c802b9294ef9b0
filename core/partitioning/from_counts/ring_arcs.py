"""Arcs of a ring: channel loads for any replicas without rerouting."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.loads.load import Load
from adapt.core.partitioning.schemes.consistent import ConsistentHash

Counts = NDArray[np.int64]
"""Replicas of each channel, shape (channels,); 0 if it is not on the ring."""


@dataclass(frozen=True, slots=True)
class Arcs:
    """Arcs between replicas, with the maximum number of replicas per channel.

    On a ring of fewer replicas, a replica takes its own arc and those of the missing ones before it. Keys are hashed
    and looked up once; each ring costs one pass over the replicas.

    Attributes:
        owners: The channel of each replica in ring order, shape (replicas,).
        numbers: The number of each replica within its channel, from 0; shape (replicas,).
        loads: The loads of the keys on its arc, by kind of load; each of shape (replicas,).
        most: The number of replicas of each channel, shape (channels,).
    """

    owners: Channels
    numbers: Channels
    loads: Mapping[Load, Floats]
    most: Counts

    @classmethod
    def from_replicas(cls, ring: ConsistentHash, first: Channels, loads: Mapping[Load, Floats]) -> "Arcs":
        """The arcs of a ring.

        Args:
            first: The first replica at or after each key, or any sum of keys; shape (keys,).
            loads: Their loads; shapes (keys,).
        """
        size = len(ring.owners)
        sums = {load: np.bincount(first, of_keys, size).astype(np.float64) for load, of_keys in loads.items()}
        return cls(ring.owners, ring.numbers, sums, ring.replica_counts)

    def loads_on(self, counts: Counts, load: Load) -> Floats:
        """The load of each channel on a ring with fewer replicas.

        Shape (channels,).

        Args:
            counts: Number of replicas of each channel, at most `most` and not all 0; channels after the last are not on
                the ring.
        """
        carried = np.zeros(len(self.most))
        _carry(self.owners, self.numbers, self.loads[load], self._of_all(counts), carried)
        return carried[: len(counts)]

    def moved(self, before: Counts, after: Counts, load: Load) -> float:
        """The load that moves when one ring follows another.

        Between channels of both rings; see `loads_on`.
        """
        counts = self._of_all(before), self._of_all(after)
        return float(_moved(self.owners, self.numbers, self.loads[load], *counts))

    def _of_all(self, counts: Counts) -> Counts:
        return np.pad(counts, (0, len(self.most) - len(counts)))


@compiled
def _carry(owners: Channels, numbers: Channels, loads: Floats, counts: Counts, carried: Floats) -> None:
    """Walk the ring backwards, since an arc belongs to the first present replica at or after it."""
    meets = _first(owners, numbers, counts)
    for at in range(len(owners) - 1, -1, -1):
        if numbers[at] < counts[owners[at]]:
            meets = owners[at]
        carried[meets] += loads[at]


@compiled
def _moved(owners: Channels, numbers: Channels, loads: Floats, before: Counts, after: Counts) -> float:
    left, met = _first(owners, numbers, before), _first(owners, numbers, after)
    moved = 0.0
    for at in range(len(owners) - 1, -1, -1):
        if numbers[at] < before[owners[at]]:
            left = owners[at]
        if numbers[at] < after[owners[at]]:
            met = owners[at]
        if left != met and after[left] and before[met]:
            moved += loads[at]
    return moved


@inlined
def _first(owners: Channels, numbers: Channels, counts: Counts) -> int:
    """The channel of the first replica of a ring."""
    for at in range(len(owners)):
        if numbers[at] < counts[owners[at]]:
            return int(owners[at])
    return -1
