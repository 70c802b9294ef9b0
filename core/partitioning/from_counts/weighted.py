"""Weighted scheme: pinned keys, and a ring weighted by remaining room."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.constructions.level import level
from adapt.core.partitioning.from_counts.ring_arcs import Arcs, Counts
from adapt.core.partitioning.loads.load import Load, ResourceFunction, steepness
from adapt.core.partitioning.measures.cells import RingReplicas
from adapt.core.partitioning.measures.floors import water_level
from adapt.core.partitioning.measures.key_loads import loads_at
from adapt.core.partitioning.measures.population import Counted, Population, frequencies_in
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

_FINE = 1 / 8
"""First distance from the level, relative to the tolerated one; kept if migration is small."""

_WIDER = 1.5
"""Factor by which the distance grows when migration is too large."""

_LEAST_TOLERATED = 0.001
"""Tolerated distance at a tolerance of 1: no number of replicas meets a load exactly."""

_LIMIT = 0.5
"""Migration between remaining channels, in units of an average channel's load, per added or removed channel (at least
one), above which the distance grows."""

_AIM = 0.7
"""Share of the distance to aim at, since replicas are whole and keys have weight."""

_GROWTH = 2
"""Most growth of replicas in a step, relative to the largest number of replicas of a channel."""

MOST_REPLICAS = 8
"""Most replicas of a channel, relative to the initial number, so that numbers do not drift."""

_ROUNDS = 40
"""Most rounds of estimating numbers of replicas and measuring their loads; usually fewer than ten are needed."""

_UNDAMPED = 4
"""Rounds that use the full estimate; later ones go half the way, so that they converge."""

_LEAST_CARRIED = 0.1
"""Least estimated load of a replica, relative to the mean, so that an empty channel converges."""

_HALVINGS = 60
"""Halvings in the search for the scale of the numbers of replicas."""


def weighted(
    counted: Counted,
    tracked: pa.Array,
    ring: ConsistentHash,
    resources: Resources,
    current: Partitioner | None = None,
    constraints: Constraints | None = None,
) -> HybridPartitioner:
    """Pin keys by `level`, then fill the remaining room by replicas.

    Replicas start from those of the current ring, for a new channel from their mean. Pinned keys are leveled over that
    ring, so they stay if that is no worse. Then few replicas are added or removed until every channel is near the
    level, as measured: within an eighth of the tolerated distance. If that migrates more than half an average
    channel's load between the remaining channels, per added or removed channel (at least one), a larger distance is
    accepted, at most the tolerated one, and later steps come nearer. Without such a current ring, nothing is kept and
    the distance is small at once. With unequal capacities, loads are utilizations, and initial replicas are
    proportional.

    A ring with unequal replicas carries unequal numbers of keys, so no resource may be constant. Of several loads the
    ring evens out the one that most resources have; a quadratic one last, since nearly all of it is on pinned keys.

    Args:
        tracked: Keys to pin, by falling count, then key bytes.
        ring: A ring with the channels of the result, all equal: the initial one if there is no current ring like it.
        current: The current partitioner. Its ring is kept if it has the hash of `ring`, and its channels have different
            numbers of replicas or as many as those of `ring`.

    Raises:
        UsageError: a resource is constant.

    Source: ours, after partitioning functions, section 4.2, whose ring ignores the pinned keys.
    """
    if ring.channels == 1:
        _evened_out(resources)
        pinned = (constraints or Constraints()).pinned
        return HybridPartitioner(ExplicitMap(tracked, np.zeros(len(tracked))).over(pinned), ring)
    filling = _Filling.of(counted, tracked, ring, resources, current, constraints or Constraints())
    in_force = _replicas_in_force(current, ring)
    added = 0 if in_force is None else abs(ring.channels - len(in_force))
    limit = np.inf if in_force is None else _LIMIT * max(1, added)
    return filling.partitioner(filling.finest(limit))


def weighted_steps(
    counted: Counted,
    tracked: pa.Array,
    ring: ConsistentHash,
    resources: Resources,
    current: Partitioner,
    constraints: Constraints,
) -> Iterator[HybridPartitioner]:
    """Weighted partitioners from no change of replicas to the finest.

    Pinned keys keep to the migration limit; how much the replicas move is for the caller to judge. Arguments are as in
    `weighted`, for more than one channel.

    Raises:
        UsageError: a resource is constant, or more must migrate than may.
    """
    filling = _Filling.of(counted, tracked, ring, resources, current, constraints)
    yield filling.partitioner(filling.kept)
    if filling.room.untracked > 0:
        for distance in _distances(resources):
            yield filling.partitioner(filling.near(distance))


def followed_ring(ring: ConsistentHash, current: Partitioner | None, constraints: Constraints) -> ConsistentHash:
    """The ring of a step before any change of replicas."""
    return _with_replicas(ring, _kept(_replicas_in_force(current, ring), ring, constraints.relative(ring.channels)))


@dataclass(frozen=True, slots=True)
class _Room:
    """Room that the pinned keys leave on each channel.

    Attributes:
        held: The load of the pinned keys on each channel, shape (channels,).
        untracked: The load of all other keys.
        capacities: Of each channel / mean capacity; shape (channels,).
        level: The utilization up to which the other keys fill the channels that are not above it already.
    """

    held: Floats
    untracked: float
    capacities: Floats
    level: float

    @classmethod
    def beside(
        cls, placed: ExplicitMap, frequencies: Frequencies, load: Load, residual: Floats, capacities: Floats
    ) -> "_Room":
        """The room next to pinned keys, for a residual load of the others on each channel, shape (channels,)."""
        loads = loads_at(frequencies, frequencies.rows_of(placed.column), load)
        held = np.bincount(placed.channels, loads, len(residual)).astype(np.float64)
        untracked = float(residual.sum())
        return cls(held, untracked, capacities, water_level(held, capacities, untracked))

    @property
    def average(self) -> float:
        """The mean load of a channel."""
        return (float(self.held.sum()) + self.untracked) / len(self.held)

    def within(self, distance: float) -> tuple[Floats, Floats]:
        """The least and the most hashed load that keep each channel within a relative distance of the level.

        A channel above the level by itself may exceed its load by that distance. Shapes (channels,).
        """
        due = self.level * self.capacities
        return np.maximum(due * (1 - distance) - self.held, 0.0), np.maximum(due, self.held) * (
            1 + distance
        ) - self.held


@dataclass(frozen=True, slots=True, eq=False)
class _Filling:
    """Pinned keys, and the room that replicas fill.

    Attributes:
        placed: The pinned keys.
        limits: The constraints.
        before: The current replicas of each channel, shape (current channels,).
        kept: The replicas at the start, shape (channels,).
    """

    ring: ConsistentHash
    resources: Resources
    limits: Constraints
    placed: ExplicitMap
    arcs: Arcs
    room: _Room
    before: Counts
    kept: Counts

    @classmethod
    def of(
        cls,
        counted: Counted,
        tracked: pa.Array,
        ring: ConsistentHash,
        resources: Resources,
        current: Partitioner | None,
        limits: Constraints,
    ) -> "_Filling":
        """Level the pinned keys over the ring at the start."""
        load = _evened_out(resources)
        in_force = _replicas_in_force(current, ring)
        start = followed_ring(ring, current, limits)
        kept = start.replica_counts
        before = kept if in_force is None else in_force
        arcs = _arcs(counted, tracked, resources, ring, before)
        residual = {each: arcs.loads_on(kept, each) for each in arcs.loads}
        problem = replace(
            Problem.from_counts(current or start, start, counted, tracked, resources, constraints=limits),
            residual=lambda: np.stack([residual[each] for each in resources.loads]),
        )
        placed = ExplicitMap(problem.keys, level(problem))
        room = _Room.beside(placed, frequencies_in(counted), load, residual[load], problem.capacities)
        return cls(ring, resources, limits, placed, arcs, room, before, kept)

    def near(self, distance: float) -> Counts:
        """Replicas near the level; see `_near`."""
        return _near(self.arcs, self.room, self.kept, distance, _evened_out(self.resources))

    def finest(self, limit: float) -> Counts:
        """Replicas that fill the room, as finely as a limit on migration allows, in average channels' loads."""
        load, counts = _evened_out(self.resources), self.kept
        if self.room.untracked > 0:
            for distance in _distances(self.resources):
                counts = self.near(distance)
                if self.arcs.moved(self.before, counts, load) <= limit * self.room.average:
                    break
        return counts

    def partitioner(self, counts: Counts) -> HybridPartitioner:
        """The pinned keys over a ring with these replicas."""
        return HybridPartitioner(self.placed.over(self.limits.pinned), _with_replicas(self.ring, counts))


def _distances(resources: Resources) -> Iterator[float]:
    """Relative distances from the level to try, growing to the tolerated one.

    Channels within (alpha - 1) / (alpha + 1) of one level have loads whose ratio is at most alpha.
    """
    load = _evened_out(resources)
    weighed = zip(resources.loads, resources.tolerance, strict=True)
    alpha = min(tolerance for each, tolerance in weighed if each == load)
    tolerated = max((alpha - 1) / (alpha + 1), _LEAST_TOLERATED)
    distance = _FINE * tolerated
    while distance < tolerated:
        yield distance
        distance *= _WIDER
    yield tolerated


def _near(arcs: Arcs, room: _Room, kept: Counts, distance: float, load: Load) -> Counts:
    """Replicas, few of them changed, that bring every channel this near to the level, or as near as possible."""
    least, most = room.within(distance)
    aimed = room.within(_AIM * distance)
    counts, nearest, best = kept, np.inf, kept
    for turn in range(_ROUNDS):
        carried = arcs.loads_on(counts, load)
        outside = float(np.maximum(least - carried, carried - most).max())
        if outside < nearest:
            nearest, best = outside, counts
        if nearest <= 0:
            break
        each = np.maximum(carried / counts, _LEAST_CARRIED * room.untracked / counts.sum())
        wanted = _cut(each * kept, *aimed, room.untracked) / each
        wanted = wanted if turn < _UNDAMPED else np.sqrt(wanted * counts)
        counts = np.clip(np.rint(wanted), 1, arcs.most[: len(kept)]).astype(np.int64)
    return best


def _cut(loads: Floats, least: Floats, most: Floats, total: float) -> Floats:
    """Clip loads so that, divided by one number, each is within its least and most, and all sum to the total.

    Only proportions of replicas count, so that number is free: with the right one few loads are clipped. Sums of
    `least` and `most` enclose the total; loads and `most` are positive. Shapes (channels,).
    """
    floors = np.divide(loads, least, where=least > 0, out=np.zeros_like(loads))
    low, high = float((loads / most).min()), max(float(floors.max()), float(loads.sum()) / total)
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        if np.clip(loads / middle, least, most).sum() > total:
            low = middle
        else:
            high = middle
    return np.clip(loads, least * high, most * high)


def _evened_out(resources: Resources) -> Load:
    """The load that the ring evens out: that of most resources, on a tie the network's before the state's.

    One that grows with the square of the count, or faster, only if there is no other.

    Raises:
        UsageError: a resource is constant.
    """
    if ResourceFunction.CONSTANT in resources.loads:
        raise UsageError(
            f"scheme weighted does not support constant resources (got --resources {resources.text}); use scheme"
            " hybrid with construction level"
        )
    loads = resources.loads[::-1]
    return max(loads, key=lambda load: (steepness(load) < 2, loads.count(load)))


def _replicas_in_force(current: Partitioner | None, ring: ConsistentHash) -> Counts | None:
    """The current replicas of each channel, shape (current channels,); None without a ring to follow."""
    now = current.base if isinstance(current, HybridPartitioner) else current
    if not isinstance(now, ConsistentHash) or now.hash is not ring.hash:
        return None
    return now.replica_counts if isinstance(now.replicas, tuple) or now.replicas == ring.replicas else None


def _kept(in_force: Counts | None, ring: ConsistentHash, capacities: Floats) -> Counts:
    """The initial replicas: the current ones, and for new channels their mean, in proportion to capacity."""
    there = np.zeros(0, np.int64) if in_force is None else in_force[: ring.channels]
    mean = (ring.replica_counts if in_force is None else in_force).mean()
    new = np.maximum(np.rint(mean * capacities[len(there) :]), 1)
    return np.concatenate((there, new.astype(np.int64)))


def _with_replicas(ring: ConsistentHash, counts: Counts) -> ConsistentHash:
    return ConsistentHash(len(counts), tuple(counts.tolist()), ring.hash)


def _arcs(counted: Counted, tracked: pa.Array, resources: Resources, ring: ConsistentHash, before: Counts) -> Arcs:
    """The arcs of the hashed keys, with room for more replicas; a removed channel keeps those that it has."""
    most = max(int(before.max()), min(_GROWTH * int(before.max()), MOST_REPLICAS * int(ring.replica_counts.max())))
    replicas = np.concatenate((np.full(ring.channels, most), before[ring.channels :]))
    whole = RingReplicas(_with_replicas(ring, replicas))
    population = Population.from_counts(counted, whole)
    rows = population.frequencies.rows_of(tracked)
    untracked = np.ones(population.entries)
    untracked[rows[rows >= 0]] = 0.0
    loads = {load: population.loads(load) * untracked for load in dict.fromkeys(resources.loads)}
    return Arcs.from_replicas(whole.ring, population.placed(whole), loads)
