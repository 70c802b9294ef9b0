"""The weighted scheme: tracked keys have explicit channels, and the ring fills up what they leave free."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.constructions.level import level
from adapt.core.partitioning.from_counts.ring_arcs import Arcs, Counts
from adapt.core.partitioning.measures.floors import water_level
from adapt.core.partitioning.measures.key_loads import loads_at
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import Load, ResourceFunction, Resources
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

_FINE = 1 / 8
"""The part of the tolerated distance from the level that is left, as long as that costs little migration."""

_WIDER = 1.5
"""By how much the distance grows each time it costs too much."""

_LEAST_TOLERATED = 0.001
"""The distance that is tolerated where the tolerance is 1: no number of replicas meets a load exactly."""

_LIMIT = 0.5
"""What may migrate between channels that stay, as a part of an average channel's load, for each channel that comes or
goes (at least one), before the distance is let grow."""

_AIM = 0.7
"""The part of the distance that is aimed at, since replicas are whole and keys have weight."""

_GROWTH = 2
"""No channel is given more replicas in a step than so many times the most that one has."""

_MOST = 8
"""Nor more than so many times the number that channels begin with, so that numbers do not drift from step to step."""

_ROUNDS = 40
"""Of estimating the numbers of replicas and measuring what they carry; mostly fewer than ten are needed."""

_UNDAMPED = 4
"""Rounds that believe the estimate; later ones go half the way, so that they settle."""

_LEAST_CARRIED = 0.1
"""Of the average replica's load: what a channel's replicas carry at least, by estimate, so that an empty one ends."""

_HALVINGS = 60
"""Of the search for the scale of the numbers of replicas."""


def weighted(
    counted: Counted,
    tracked: pa.Array,
    ring: ConsistentHash,
    resources: Resources,
    current: Partitioner | None = None,
    constraints: Constraints | None = None,
) -> HybridPartitioner:
    """Place tracked keys by `level`, then give each channel as many replicas as the room beside them calls for.

    Numbers of replicas begin with those of the ring in force, a new channel's with their mean. Tracked keys are
    levelled over that ring, so that they stay where it does not hurt. Then few replicas come or go until every channel
    is near the level, as measured: within an eighth of the distance that the tolerance leaves. If for that more than
    half an average channel's load had to migrate between the channels that stay, for each channel that comes or goes
    (at least one), a wider distance will do, at most the tolerated one, and later steps come nearer. Where no such ring
    is in force, nothing is kept and the distance is small at once. Where channels differ in capacity, their loads are
    utilisations, and what they begin with is in proportion.

    A ring of uneven numbers carries uneven numbers of keys, so no resource may be constant. Of several loads the ring
    evens out the one that most resources have; a quadratic one last, since that is nearly all on tracked keys.

    Args:
        tracked: Keys to map explicitly, by falling count, then key bytes.
        ring: Of equal channels, those of the result: what to begin with where no ring like it is in force.
        current: The partitioner in force. Its ring is kept if it has the hash of `ring`, and its channels have
            different numbers of replicas or as many as those of `ring`.

    Raises:
        UsageError: a resource is constant.

    Source: ours, after partitioning functions, section 4.2, whose ring is blind to the tracked keys.
    """
    load, limits = _evened_out(resources), constraints or Constraints()
    if ring.channels == 1:
        return HybridPartitioner(ExplicitMap(tracked, np.zeros(len(tracked))).over(limits.pinned), ring)
    in_force = _replicas_in_force(current, ring)
    kept = _kept(in_force, ring, limits.relative(ring.channels))
    before = kept if in_force is None else in_force
    start = _with_replicas(ring, kept)
    population = Population.from_counts(counted)
    arcs = _arcs(population, tracked, resources, ring, before)
    residual = {each: arcs.loads_on(kept, each) for each in arcs.loads}
    problem = replace(
        Problem.from_counts(current or start, start, population, tracked, resources, constraints=limits),
        residual=lambda: np.stack([residual[each] for each in resources.loads]),
    )
    placed = ExplicitMap(problem.keys, level(problem))
    room = _Room.beside(placed, population, load, residual[load], problem.capacities)
    limit = np.inf if in_force is None else _LIMIT * max(1, abs(len(kept) - len(before)))
    counts = _filled(arcs, room, before, kept, limit, resources)
    return HybridPartitioner(placed.over(limits.pinned), _with_replicas(ring, counts))


@dataclass(frozen=True, slots=True)
class _Room:
    """What tracked keys leave free.

    Attributes:
        held: What they load onto each channel, shape (channels,).
        untracked: The load of all other keys.
        capacities: Of each channel, over that of the average one; shape (channels,).
        level: The utilisation up to which these keys fill the channels that do not stick out by what they hold.
    """

    held: Floats
    untracked: float
    capacities: Floats
    level: float

    @classmethod
    def beside(
        cls, placed: ExplicitMap, population: Population, load: Load, residual: Floats, capacities: Floats
    ) -> "_Room":
        """The room beside tracked keys, for what the others load onto the channels of some ring, shape (channels,)."""
        frequencies = population.frequencies
        loads = loads_at(frequencies, frequencies.rows_of(placed.column), load)
        held = np.bincount(placed.channels, loads, len(residual)).astype(np.float64)
        untracked = float(residual.sum())
        return cls(held, untracked, capacities, water_level(held, capacities, untracked))

    @property
    def average(self) -> float:
        """The whole load of an average channel."""
        return (float(self.held.sum()) + self.untracked) / len(self.held)

    def within(self, distance: float) -> tuple[Floats, Floats]:
        """The least and the most load of untracked keys that leave each channel so near the level, as a part of it.

        A channel that sticks out by itself may do so by that part more. Shapes (channels,).
        """
        due = self.level * self.capacities
        return np.maximum(due * (1 - distance) - self.held, 0.0), np.maximum(due, self.held) * (
            1 + distance
        ) - self.held


def _filled(arcs: Arcs, room: _Room, before: Counts, kept: Counts, limit: float, resources: Resources) -> Counts:
    """The replicas of each channel with which the ring fills the room, finely if that keeps to the limit."""
    load, counts = _evened_out(resources), kept
    if room.untracked > 0:
        for distance in _distances(resources):
            counts = _near(arcs, room, kept, distance, load)
            if arcs.moved(before, counts, load) <= limit * room.average:
                break
    return counts


def _distances(resources: Resources) -> Iterator[float]:
    """How far from the level a channel may be, as a part of it: little at first, at last as far as is tolerated.

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
    """Replicas, few of them changed, with which every channel is so near the level, or as near as was found."""
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
    """The loads cut so that, divided by one number, each is from its least to its most and all sum to the total.

    Only proportions of replicas count, so that number is free: with the right one few loads need cutting. Sums of
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
    """The load that the ring is to even out: that of most resources, of as many the network's before the state's.

    A quadratic one only where there is no other.

    Raises:
        UsageError: a resource is constant.
    """
    if ResourceFunction.CONSTANT in resources.loads:
        raise UsageError(
            f"the weighted ring spreads keys unevenly to even out their load, and resources {resources.letters} have"
            " one that is constant in each key: choose the hybrid scheme with construction level"
        )
    loads = resources.loads[::-1]
    return max(loads, key=lambda load: (load is not ResourceFunction.QUADRATIC, loads.count(load)))


def _replicas_in_force(current: Partitioner | None, ring: ConsistentHash) -> Counts | None:
    """The replicas of each channel now, shape (channels now,); None if there is no ring that is to be followed."""
    now = current.ring if isinstance(current, HybridPartitioner) else current
    if not isinstance(now, ConsistentHash) or now.hash is not ring.hash:
        return None
    return now.replica_counts if isinstance(now.replicas, tuple) or now.replicas == ring.replicas else None


def _kept(in_force: Counts | None, ring: ConsistentHash, capacities: Floats) -> Counts:
    """The replicas to begin with: those in force, and of new channels the mean, in proportion to capacity."""
    there = np.zeros(0, np.int64) if in_force is None else in_force[: ring.channels]
    mean = (ring.replica_counts if in_force is None else in_force).mean()
    new = np.maximum(np.rint(mean * capacities[len(there) :]), 1)
    return np.concatenate((there, new.astype(np.int64)))


def _with_replicas(ring: ConsistentHash, counts: Counts) -> ConsistentHash:
    return ConsistentHash(len(counts), tuple(counts.tolist()), ring.hash)


def _arcs(
    population: Population, tracked: pa.Array, resources: Resources, ring: ConsistentHash, before: Counts
) -> Arcs:
    """The arcs of the untracked keys, with room for more replicas; a channel that goes keeps those that it has."""
    most = max(int(before.max()), min(_GROWTH * int(before.max()), _MOST * int(ring.replica_counts.max())))
    replicas = np.concatenate((np.full(ring.channels, most), before[ring.channels :]))
    rows = population.frequencies.rows_of(tracked)
    untracked = np.ones(len(population.keys))
    untracked[rows[rows >= 0]] = 0.0
    loads = {load: population.loads(load) * untracked for load in dict.fromkeys(resources.loads)}
    return Arcs.from_keys(population.keys, loads, replicas, ring.hash)
