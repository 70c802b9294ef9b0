"""Assignment of partitions to workers that maximizes the bottleneck's throughput."""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput

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
