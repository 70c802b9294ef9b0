"""Which worker should have which partition, if all is known: the least time that the slowest worker needs for a tuple."""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput

CLOSE = 1e-3
"""How far above what is not reached the search for the least time ends, as a share."""

NOWHERE = -1

WORTH_MOVING_ALL = 0.05
"""By what share an assignment from nothing must beat one that keeps what it can."""


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What partitions take and workers have, at some time.

    Attributes:
        work_s: CPU that a tuple of the stage takes at each partition on average, shape (partitions,).
        fixed_s: CPU that it takes at each worker, wherever partitions are.
        speeds: The share of its CPU that each worker has, above 0, shape (workers,).
        sizes: State of each partition, bytes, shape (partitions,).
        room: Memory of each worker, bytes, shape (workers,).
    """

    work_s: NDArray[np.float64]
    fixed_s: float
    speeds: NDArray[np.float64]
    sizes: NDArray[np.float64]
    room: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not (self.speeds.min() > 0 and self.work_s.min() >= 0 and self.fixed_s >= 0):
            raise BadInput(
                "a worker has no speed, or a partition less than no work; give speeds above 0, work from 0 up"
            )

    def slowest_s(self, owners: NDArray[np.int32]) -> float:
        """1 / X: what a tuple of the stage takes at the worker that is the bottleneck."""
        loads = np.bincount(owners, self.work_s, len(self.speeds))
        return float(((loads + self.fixed_s) / self.speeds).max())

    def fits(self, owners: NDArray[np.int32]) -> bool:
        """Whether the state of every worker is within its memory."""
        return bool((np.bincount(owners, self.sizes, len(self.room)) <= self.room).all())


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """A worker for each partition, and how far it may be from the best.

    Attributes:
        owners: Shape (partitions,).
        slowest_s: What a tuple takes at the bottleneck.
        bound_s: No assignment does it in less.
    """

    owners: NDArray[np.int32]
    slowest_s: float
    bound_s: float

    @property
    def gap(self) -> float:
        """How much longer it takes than the bound, as a share."""
        return self.slowest_s / self.bound_s - 1


def bound_s(demand: Demand) -> float:
    """A time below which no assignment comes, whatever it moves.

    The j heaviest partitions are on j workers at most, so that these, and the fastest j all the more, do their work; and
    all workers do all the work.
    """
    speeds = -np.sort(-demand.speeds)
    heaviest = -np.sort(-demand.work_s)[: len(speeds)]
    count = np.arange(1, len(heaviest) + 1)
    some = (np.cumsum(heaviest) + count * demand.fixed_s) / np.cumsum(speeds)[: len(heaviest)]
    whole = (demand.work_s.sum() + len(speeds) * demand.fixed_s) / speeds.sum()
    return float(max(some.max(), whole))


def assign(owners: NDArray[np.int32], demand: Demand) -> Assignment:
    """A good assignment with few moves from where partitions are.

    Finding the best is NP-hard. Workers keep what they can do within a time, and what leaves them goes, heaviest first,
    to where most is left, or where lighter ones make way; the least time for which this works is found by bisection.
    Where it is clearly worse than placing everything anew, everything is. Memory is kept to, unless there is too little
    of it.
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
    """An assignment with which every worker takes at most so long, keeping what workers can keep; None, none is found."""
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
    """Few of some partitions with which enough work and state leaves a worker; all, if they are too few."""
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
    """Every partition, heaviest first, to the worker that then takes least; None, memory is in the way."""
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
