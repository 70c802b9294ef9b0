"""Policies of a user's own: what they see and answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError, listed
from adapt.core.own.own_code import OwnCode
from adapt.core.stage.control.workers import PartitionsSeen, Seen
from adapt.core.stage.movement.controller import Move, Observation

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


Answer = TypeVar("Answer")

_MOVES = "moves must return a mapping of partition to worker, such as {3: 0}, empty for no move"


class OwnMoves:
    """A user's policy that moves partitions.

    Answers that cannot be carried out end the replay in a sentence.
    """

    def __init__(self, own: OwnCode) -> None:
        """Make an instance for one run."""
        self._own, self._policy, self._round = own, made(own, MovePolicy, "moves"), 0

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round, by rank of live workers."""
        self._round += 1
        on = f"round {self._round} at {observed.at_s:.4g} s"
        view = view_of_round(observed)
        moves = _answered(self._own, self._policy.moves, _checked_moves, view, on)
        ranks = {number: rank for rank, number in enumerate(observed.numbers or range(observed.workers))}
        return tuple(Move(one, int(observed.owners[one]), ranks[to]) for one, to in moves.items())


class OwnScaling:
    """A user's policy that chooses the number of workers."""

    def __init__(self, own: OwnCode) -> None:
        """Make an instance for one run."""
        self._own, self._policy, self._period = own, made(own, ScalePolicy, "workers"), 0
        self._processed: NDArray[np.int64] | None = None

    def wanted(self, seen: Seen) -> int:
        """The number of workers wanted."""
        assert seen.partitions is not None
        self._period += 1
        now = seen.partitions()
        before = np.zeros_like(now.processed) if self._processed is None else self._processed
        self._processed = now.processed
        view = view_of_period(seen, now, before)
        on = f"period {self._period} at {seen.at_s:.4g} s"
        return _answered(self._own, self._policy.workers, _checked_workers, view, on)


def made(own: OwnCode, protocol: type, method: str) -> Any:
    """An instance of a user's class."""
    policy = own.made()
    if not isinstance(policy, protocol):
        other = {"moves": "replay elastic", "workers": "replay flux"}[method]
        has = {"moves": ScalePolicy, "workers": MovePolicy}[method]
        fits = f"; it fits `adapt {other}`" if isinstance(policy, has) else ""
        raise UsageError(f"policy {own.name} has no method {method}(self, view){fits}")
    return policy


def _checked_moves(view: View, answer: Any) -> dict[int, int]:
    """The moves of an answer, without those that change nothing."""
    if not isinstance(answer, Mapping):
        raise BadInput(f"{_MOVES} (got {_shown(answer)})")
    moves = {}
    for one, to in answer.items():
        partition, worker = _whole(one), _whole(to)
        if partition is None or worker is None:
            raise BadInput(f"{_MOVES} (got {_shown({one: to})})")
        if not 0 <= partition < view.partitions:
            raise BadInput(f"moves partition {partition}, but partitions are 0 to {view.partitions - 1}")
        if not 0 <= worker < view.workers:
            raise BadInput(f"moves partition {partition} to worker {worker}, but workers are 0 to {view.workers - 1}")
        if not view.up[worker]:
            up = listed([str(each) for each in np.flatnonzero(view.up).tolist()])
            raise BadInput(f"moves partition {partition} to worker {worker}, which is down; workers that are up: {up}")
        if worker != view.owner[partition]:
            moves[partition] = worker
    return moves


def _checked_workers(_view: View, answer: Any) -> int:
    """The number of workers of an answer."""
    wanted = _whole(answer)
    if wanted is None or wanted < 1:
        raise BadInput(f"workers must return a whole number from 1 (got {_shown(answer)})")
    return wanted


def _answered(
    own: OwnCode, decide: Callable[[View], Any], checked: Callable[[View, Any], Answer], view: View, on: str
) -> Answer:
    """The answer of a policy, checked before anything is done."""
    try:
        answer = decide(view)
    except Exception as error:
        raise own.failed(error, on) from error
    try:
        return checked(view, answer)
    except BadInput as wrong:
        raise BadInput(f"policy {own.name}, {on}: {wrong}") from None


def _whole(value: Any) -> int | None:
    """A whole number, as of Python or numpy; None for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return index(value)
    except TypeError:
        return None


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    kind = "" if value is None or type(value) is int else f", a {type(value).__name__}"
    return f"{text[:60]}{'...' if len(text) > 60 else ''}{kind}"
