"""Policies of a user's own as those of a replay."""

from collections.abc import Callable, Mapping
from operator import index
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError, listed
from adapt.core.own.own_code import OwnCode
from adapt.core.own_policies.view import MovePolicy, ScalePolicy, View, view_of_period, view_of_round
from adapt.core.stage.control.workers import Seen
from adapt.core.stage.movement.controller import Move, Observation

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
