"""Optimum policy: knows the future, as a bound for the others.

Not in the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Rows, Source
from adapt.core.stage.conditions.faults import ExternalLoad
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.movement.controller import Move, Observation, Round
from adapt.core.stage.movement.spilling import Memory

CLOSE = 1e-3
"""Relative tolerance of the bisection."""

NOWHERE = -1

WORTH_MOVING_ALL = 0.05
"""Relative gain from which a fresh assignment replaces one with few moves."""


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Work of partitions and resources of workers."""

    work_s: NDArray[np.float64]  # mean CPU seconds per tuple of the stage in each partition, shape (partitions,)
    fixed_s: float  # CPU seconds per tuple on each worker, independent of the placement
    speeds: NDArray[np.float64]  # share of its CPU available on each worker, above 0, shape (workers,)
    sizes: NDArray[np.float64]  # state of each partition in bytes, shape (partitions,)
    room: NDArray[np.float64]  # memory of each worker in bytes, shape (workers,)

    def __post_init__(self) -> None:
        if not (self.speeds.min() > 0 and self.work_s.min() >= 0 and self.fixed_s >= 0):
            raise BadInput("speeds of workers must be above 0, and work at least 0")

    def slowest_s(self, owners: NDArray[np.int32]) -> float:
        """Seconds per tuple at the bottleneck worker, the inverse of the throughput."""
        loads = np.bincount(owners, self.work_s, len(self.speeds))
        return float(((loads + self.fixed_s) / self.speeds).max())

    def fits(self, owners: NDArray[np.int32]) -> bool:
        """Whether the state fits in the memory of every worker."""
        return bool((np.bincount(owners, self.sizes, len(self.room)) <= self.room).all())


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """An assignment of partitions to workers, with a lower bound."""

    owners: NDArray[np.int32]  # worker of each partition, shape (partitions,)
    slowest_s: float  # seconds per tuple at the bottleneck
    bound_s: float  # lower bound for any assignment

    @property
    def gap(self) -> float:
        """Relative distance from the lower bound."""
        return self.slowest_s / self.bound_s - 1


def bound_s(demand: Demand) -> float:
    """Lower bound of the seconds per tuple for any assignment.

    The j hottest partitions are on at most j workers, so the fastest j workers bound their work; all workers bound the
    total work.
    """
    speeds = -np.sort(-demand.speeds)
    heaviest = -np.sort(-demand.work_s)[: len(speeds)]
    count = np.arange(1, len(heaviest) + 1)
    some = (np.cumsum(heaviest) + count * demand.fixed_s) / np.cumsum(speeds)[: len(heaviest)]
    whole = (demand.work_s.sum() + len(speeds) * demand.fixed_s) / speeds.sum()
    return float(max(some.max(), whole))


def assign(owners: NDArray[np.int32], demand: Demand) -> Assignment:
    """A good assignment with few moves from the current owners.

    The optimum is NP-hard. Workers keep the partitions that they can process within a time; the others go, hottest
    first, to the worker with the most capacity left, or displace colder ones. Bisection finds the smallest feasible
    time. A fresh assignment replaces the result if it is clearly better. Memory limits hold unless there is too little
    memory in all.
    """
    bound = bound_s(demand)
    if not demand.fits(owners) and demand.sizes.sum() > demand.room.sum():
        demand = Demand(demand.work_s, demand.fixed_s, demand.speeds, demand.sizes, np.full_like(demand.room, np.inf))
    anew = _heaviest_first(demand)
    best = owners if demand.fits(owners) else None
    low, high = bound, demand.slowest_s(owners) * (1 if best is not None else 2)
    while high > low * (1 + CLOSE):
        middle = float(np.sqrt(low * high))
        kept = _keeping(owners, demand, middle)
        if kept is None:
            low = middle
        else:
            best, high = kept, min(middle, demand.slowest_s(kept))
    if best is None or (anew is not None and demand.slowest_s(anew) < (1 - WORTH_MOVING_ALL) * demand.slowest_s(best)):
        best = owners if anew is None else anew
    return Assignment(best, demand.slowest_s(best), bound)


def _keeping(owners: NDArray[np.int32], demand: Demand, within_s: float) -> NDArray[np.int32] | None:
    """An assignment within a time that keeps what workers can keep; None if not found."""
    workers = len(demand.speeds)
    most = demand.speeds * within_s - demand.fixed_s
    left = most - np.bincount(owners, demand.work_s, workers)
    room = demand.room - np.bincount(owners, demand.sizes, workers)
    assigned = owners.copy()
    leaving: list[tuple[float, int]] = []

    def leave(partitions: list[int], worker: int) -> None:
        for partition in partitions:
            heappush(leaving, (-float(demand.work_s[partition]), partition))
            assigned[partition] = NOWHERE
        left[worker] += demand.work_s[partitions].sum()
        room[worker] += demand.sizes[partitions].sum()

    for worker in np.flatnonzero((left < 0) | (room < 0)).tolist():
        own = np.flatnonzero(assigned == worker)
        too_heavy = own[demand.work_s[own] > most[worker]].tolist()
        leave(too_heavy, worker)
        leave(_leaving(np.flatnonzero(assigned == worker), demand, -left[worker], -room[worker]), worker)
    while leaving:
        partition = heappop(leaving)[1]
        work, size = demand.work_s[partition], demand.sizes[partition]
        to = int(np.argmax(np.where((left >= work) & (room >= size), left, -np.inf)))
        if left[to] < work or room[to] < size:
            to = int(np.argmax(np.where(most >= work, left, -np.inf)))
            own = np.flatnonzero(assigned == to)
            leave(_leaving(own[demand.work_s[own] < work], demand, work - left[to], size - room[to]), to)
            if left[to] < work or room[to] < size:
                return None
        assigned[partition] = to
        left[to] -= work
        room[to] -= size
    return assigned


def _leaving(own: NDArray[np.int64], demand: Demand, work: float, size: float) -> list[int]:
    """A few partitions that take enough work and state off a worker; all, if they are too few."""
    leaving: list[int] = []
    ranked = own[np.argsort(demand.work_s[own], kind="stable")]
    while work > 0 and len(ranked):
        at = min(int(np.searchsorted(demand.work_s[ranked], work)), len(ranked) - 1)
        leaving.append(int(ranked[at]))
        work -= demand.work_s[ranked[at]]
        size -= demand.sizes[ranked[at]]
        ranked = np.delete(ranked, at)
    for partition in ranked[np.argsort(-demand.sizes[ranked], kind="stable")]:
        if size <= 0:
            break
        leaving.append(int(partition))
        size -= demand.sizes[partition]
    return leaving


def _heaviest_first(demand: Demand) -> NDArray[np.int32] | None:
    """Each partition, hottest first, on the worker that is then least loaded; None if memory does not suffice."""
    needs, room = np.full(len(demand.speeds), demand.fixed_s), demand.room.copy()
    owners = np.zeros(len(demand.work_s), np.int32)
    for partition in np.argsort(-demand.work_s, kind="stable"):
        work, size = demand.work_s[partition], demand.sizes[partition]
        worker = int(np.argmin(np.where(room >= size, (needs + work) / demand.speeds, np.inf)))
        if room[worker] < size:
            return None
        owners[partition] = worker
        needs[worker] += work
        room[worker] -= size
    return owners


HORIZON_S = 1.0
"""Lookahead."""

WORTHWHILE = 0.02
"""Relative improvement of the bottleneck that triggers moves."""

LEAST_SPEED = 1e-3
"""Speed of a paused worker, to avoid division by zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """Knowledge of a run in advance."""

    settings: StageSettings  # the stage and its disturbances
    work_s: NDArray[np.float64]  # CPU seconds of each partition per tuple of the period, shape (periods, partitions)
    period_s: float  # length of a period; infinite for a single one
    memory: Memory | None = None  # memory limits, if any

    def demand(self, from_s: float, to_s: float) -> Demand:
        """Mean work and speeds between two times, and the smallest memory."""
        last = len(self.work_s) - 1
        first, end = (min(last, int(at / self.period_s)) for at in (from_s, to_s))
        return Demand(
            work_s=self.work_s[first : end + 1].mean(axis=0),
            fixed_s=self.settings.costs.produce_s / self.settings.workers,
            speeds=np.array([self._speed(worker, from_s, to_s) for worker in range(self.settings.workers)]),
            sizes=(self.settings.state_sizes() * self.settings.costs.tuple_bytes).astype(np.float64),
            room=self._room(to_s),
        )

    def bound_rate(self, from_s: float, to_s: float) -> float:
        """Upper bound of the throughput between two times.

        Assignments are fixed within each lookahead step. Tuples buffered at the start may come on top.
        """
        starts = np.arange(from_s, to_s, HORIZON_S)
        ends = np.minimum(starts + HORIZON_S, to_s)
        rates = [1 / bound_s(self.demand(*times)) for times in zip(starts.tolist(), ends.tolist(), strict=True)]
        return float(np.average(rates, weights=ends - starts))

    def _speed(self, worker: int, from_s: float, to_s: float) -> float:
        lost = 0.0
        for one in self.settings.disturbances:
            if one.worker == worker:
                speed = one.kept if isinstance(one, ExternalLoad) else one.speed
                lost += (1 - speed) * max(0.0, min(one.end_s, to_s) - max(one.start_s, from_s))
        return max(LEAST_SPEED, 1 - lost / (to_s - from_s))

    def _room(self, to_s: float) -> NDArray[np.float64]:
        if self.memory is None:
            return np.full(self.settings.workers, np.inf)
        room = np.full(self.settings.workers, self.memory.worker_bytes)
        for change in sorted(self.memory.changes, key=lambda one: one.at_s):
            if change.at_s <= to_s:
                room[change.worker] = change.bytes
        return room


def ahead_of(settings: StageSettings, source: Source, memory: Memory | None = None, period_s: float = 1.0) -> Ahead:
    """Knowledge of a run from its settings and source.

    Args:
        source: The tuples; a stream is read once and counted.
        memory: Memory limits, if any.
        period_s: Resolution of the load over time. Rows without arrival times count as processed at the full rate of
            the stage.
    """
    if not period_s > 0:
        raise UsageError(f"the period must be above 0 (got {period_s:g} s)")
    costs, groups = settings.costs, len(settings.partition_of)
    if not isinstance(source, Rows):
        shares = np.ones(groups) if source.shares is None else source.shares
        by_partition = np.bincount(settings.partition_of, shares, settings.partitions)
        return Ahead(settings, costs.service_s * by_partition[None] / shares.sum(), np.inf, memory)
    rows_a_period = period_s * settings.workers / (costs.service_s + costs.produce_s)
    work_s, counts = np.zeros((1, settings.partitions)), np.zeros(1)
    rows = 0
    for chunk in source.chunks():
        ranks = np.arange(rows, rows + len(chunk.groups))
        rows += len(ranks)
        at = (ranks / rows_a_period if chunk.due_s is None else chunk.due_s / period_s).astype(np.int64)
        more = max(0, int(at.max(initial=0)) + 1 - len(work_s))
        work_s = np.concatenate([work_s, np.zeros((more, settings.partitions))])
        counts = np.concatenate([counts, np.zeros(more)])
        first = int(at.min(initial=len(work_s) - 1))
        cost_s = np.full(len(ranks), costs.service_s) if chunk.cost_s is None else chunk.cost_s
        cells = (at - first) * settings.partitions + settings.partition_of[chunk.groups]
        periods = len(work_s) - first
        work_s[first:] += np.bincount(cells, cost_s, periods * settings.partitions).reshape(periods, -1)
        counts[first:] += np.bincount(at - first, minlength=periods)
    return Ahead(settings, work_s / np.maximum(1.0, counts)[:, None], period_s, memory)


class OptimumController:
    """Optimum controller: assigns partitions by the known future load.

    Every round considers the mean load over the lookahead. Partitions move if the bottleneck improves enough, or if
    state does not fit.

    Attributes:
        found: Assignments made, with their gaps.
    """

    def __init__(self, ahead: Ahead, collection_s: float, horizon_s: float = HORIZON_S) -> None:
        """Start a controller for one run.

        Args:
            collection_s: Time between moves and the next round.
            horizon_s: Lookahead.
        """
        if not (collection_s > 0 and horizon_s > 0):
            raise UsageError(
                f"collection time and lookahead must be above 0 (got {collection_s:g} and {horizon_s:g} s)"
            )
        self._ahead, self._round_s, self._horizon_s = ahead, collection_s, horizon_s
        self.found: list[Assignment] = []

    def collection_s(self, previous: Round | None) -> float:  # noqa: ARG002
        """A constant collection time."""
        return self._round_s

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves from the current owners to the assignment."""
        if observed.workers != self._ahead.settings.workers:
            return ()
        demand = self._ahead.demand(observed.at_s, observed.at_s + self._horizon_s)
        demand = replace(demand, sizes=observed.state_bytes.astype(np.float64))
        present, fits = demand.slowest_s(observed.owners), demand.fits(observed.owners)
        if fits and present <= (1 + WORTHWHILE) * bound_s(demand):
            return ()
        found = assign(observed.owners, demand)
        if fits and present <= (1 + WORTHWHILE) * found.slowest_s:
            return ()
        self.found.append(found)
        leaving = np.flatnonzero(found.owners != observed.owners).tolist()
        return tuple(Move(one, int(observed.owners[one]), int(found.owners[one])) for one in leaving)
