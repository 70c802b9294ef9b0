"""Policies of a user's own as those of a replay."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.lab.answers import Impossible, checked_moves, checked_workers
from adapt.core.lab.view import MovePolicy, ScalePolicy, View, view_of_period, view_of_round
from adapt.core.own.own_code import OwnCode
from adapt.core.stage.control.workers import Seen
from adapt.core.stage.movement.controller import Move, Observation


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
        moves = checked_moves_of(self._own, self._policy, view, on)
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
        return checked_workers_of(self._own, self._policy, view, f"period {self._period} at {seen.at_s:.4g} s")


def made(own: OwnCode, protocol: type, method: str) -> Any:
    """An instance of a user's class."""
    policy = own.made()
    if not isinstance(policy, protocol):
        other = {"moves": "replay elastic", "workers": "replay flux"}[method]
        has = {"moves": ScalePolicy, "workers": MovePolicy}[method]
        fits = f"; it fits `adapt {other}`" if isinstance(policy, has) else ""
        raise UsageError(f"policy {own.name} has no method {method}(self, view){fits}")
    return policy


def checked_moves_of(own: OwnCode, policy: MovePolicy, view: View, on: str) -> dict[int, int]:
    """The moves that a policy answers."""
    try:
        return checked_moves(view, policy.moves(view))
    except Impossible as wrong:
        raise Impossible(f"policy {own.name}, {on}: {wrong}") from None
    except Exception as error:
        raise own.failed(error, on) from error


def checked_workers_of(own: OwnCode, policy: ScalePolicy, view: View, on: str) -> int:
    """The number of workers that a policy answers."""
    try:
        return checked_workers(policy.workers(view))
    except Impossible as wrong:
        raise Impossible(f"policy {own.name}, {on}: {wrong}") from None
    except Exception as error:
        raise own.failed(error, on) from error
