"""What a policy of a user's own sees and answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.control.workers import PartitionsSeen, Seen
from adapt.core.stage.movement.controller import Observation

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What a policy sees when it decides; arrays are read-only.

    Attributes:
        time_s: Simulated time.
        period_s: Length of the period that was observed, until now.
        workers: Number of workers; those that are down count for moves, those that are not started never.
        most_workers: Most workers that there may be.
        up: Whether each worker is up, shape (workers,).
        utilization: Share of the period that each worker was busy, 0 while it is down; shape (workers,).
        free_bytes: Memory that each worker has left for state, infinite without a limit; shape (workers,).
        owner: Worker of each partition, shape (partitions,).
        load: Share of a worker's time that each partition took, shape (partitions,).
        processed: Rows of each partition processed in the period, shape (partitions,); their work for several stages.
        queued: Rows of each partition that wait at its worker, those on disk included; shape (partitions,).
        state_bytes: State of each partition, shape (partitions,).
        arrived: Rows that arrived in the period; None where a controller of moves does not learn it.
        waiting: Rows that arrived and are not processed, at workers or before them; None likewise.
    """

    time_s: float
    period_s: float
    workers: int
    most_workers: int
    up: NDArray[np.bool_]
    utilization: NDArray[np.float64]
    free_bytes: NDArray[np.float64]
    owner: NDArray[np.int64]
    load: NDArray[np.float64]
    processed: NDArray[np.int64]
    queued: NDArray[np.int64]
    state_bytes: NDArray[np.int64]
    arrived: int | None = None
    waiting: int | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self.owner)


@runtime_checkable
class MovePolicy(Protocol):
    """A policy that moves partitions, for `adapt replay flux`."""

    def moves(self, view: View, /) -> Mapping[int, int]:
        """The new worker of each partition that moves; empty for no move."""


@runtime_checkable
class ScalePolicy(Protocol):
    """A policy that chooses the number of workers, for `adapt replay elastic`."""

    def workers(self, view: View, /) -> int:
        """The number of workers wanted, from 1; at most `most_workers` start."""


def view_of_round(observed: Observation) -> View:
    """What the controller of a round observed, by the numbers of workers."""
    numbers = np.asarray(observed.numbers or range(observed.workers), np.int64)
    in_all = observed.in_all or observed.workers
    owner = numbers[observed.owners]
    utilization = _spread(observed.utilization, numbers, in_all)
    used = np.bincount(owner, np.where(observed.on_disk, 0, observed.state_bytes), in_all)
    free = _spread(observed.available_bytes, numbers, in_all) - used
    up: NDArray[np.bool_] = np.zeros(in_all, np.bool_)
    up[numbers] = True
    return View(
        time_s=observed.at_s,
        period_s=float(observed.collected_s.mean()),
        workers=in_all,
        most_workers=in_all,
        up=up,
        utilization=utilization,
        free_bytes=np.where(up, np.maximum(0.0, free), 0.0),
        owner=owner,
        load=_load(owner, utilization, observed.processed),
        processed=observed.processed.copy(),
        queued=observed.unprocessed + (0 if observed.in_flight is None else observed.in_flight),
        state_bytes=observed.state_bytes.copy(),
    )


def view_of_period(seen: Seen, now: PartitionsSeen, before: NDArray[np.int64]) -> View:
    """What an autoscaler observed in a period.

    Args:
        before: Rows of each partition processed when the period began.
    """
    m = seen.workers
    utilization = np.asarray(seen.busy_s / seen.collected_s if seen.collected_s > 0 else np.zeros(m), np.float64)
    owner, processed = now.owners.astype(np.int64), now.processed - before
    return View(
        time_s=seen.at_s,
        period_s=seen.collected_s,
        workers=m,
        most_workers=now.pool,
        up=np.ones(m, np.bool_),
        utilization=utilization,
        free_bytes=np.full(m, np.inf),
        owner=owner,
        load=_load(owner, utilization, processed),
        processed=processed,
        queued=now.queued.copy(),
        state_bytes=now.state_bytes.copy(),
        arrived=seen.arrived,
        waiting=seen.waiting,
    )


def _load(owner: NDArray[np.int64], utilization: NDArray[Any], processed: NDArray[np.int64]) -> NDArray[np.float64]:
    """The time of each worker, shared among its partitions by their rows."""
    by_worker = np.bincount(owner, processed, len(utilization))
    return np.asarray(utilization[owner] * processed / np.maximum(1, by_worker)[owner])


def _spread(values: NDArray[np.float64], numbers: NDArray[np.int64], in_all: int) -> NDArray[np.float64]:
    """Values by worker number; 0 for workers that are down."""
    spread: NDArray[np.float64] = np.zeros(in_all)
    spread[numbers] = values
    return spread
