"""Load policy that tunes its collection time; not in the paper, which leaves it as future work."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S, PacedController, Policy
from adapt.core.stage.movement.controller import Move, Observation, Round

LEAST_S, MOST_S = 0.05, 5.0
"""Limits of delta_min, unless it begins outside."""

TOLERANCE = 0.2
"""Tolerated excess of a receiver's utilization over the prediction."""

REMEMBERED_ROUNDS = 20
"""Rounds in which the return of a partition counts as a wrong move."""

RAISED, LOWERED = 2.0, 0.8
"""Factors of the minimum collection time after a wrong round and after a right one."""


class TunedController:
    """Collects longer after wrong moves, and shorter again while predictions hold.

    A round was wrong if, in the next one, a receiver exceeds the paper's estimate u_j (1 + n_p / N_j) by more than 0.2
    and is busier than its donor, or if it returns a partition to a worker that it left in recent rounds. A receiver
    that is only busier than predicted works off the tuples that producers held back during the move.

    Attributes:
        min_collection_s: Current delta_min.
    """

    def __init__(self, policy: Policy, begin_s: float = MIN_COLLECTION_S) -> None:
        """Start a controller for one run.

        Args:
            begin_s: Initial delta_min.
        """
        self._paced = PacedController(policy, begin_s)
        self._least_s, self._most_s = min(begin_s, LEAST_S), max(begin_s, MOST_S)
        self._moves: tuple[Move, ...] = ()
        self._predicted: NDArray[np.float64] = np.empty(0)
        self._left: deque[frozenset[tuple[int, int]]] = deque(maxlen=REMEMBERED_ROUNDS)
        self.min_collection_s = begin_s

    def collection_s(self, previous: Round | None) -> float:
        """Collection time as in the paper, with the current delta_min."""
        return replace(self._paced, min_collection_s=self.min_collection_s).collection_s(previous)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round; adapts delta_min by the outcome of the last."""
        busy = observed.utilization
        surprised = len(busy) == len(self._predicted) and any(
            busy[move.receiver] > max(busy[move.donor], self._predicted[move.receiver] + TOLERANCE)
            for move in self._moves
        )
        moves = tuple(self._paced.plan(observed))
        returns = any((move.partition, move.receiver) in left for move in moves for left in self._left)
        wanted_s = self.min_collection_s * (RAISED if surprised or returns else LOWERED)
        self.min_collection_s = min(max(wanted_s, self._least_s), self._most_s)
        self._left.append(frozenset((move.partition, move.donor) for move in moves))
        self._moves, self._predicted = moves, predicted_utilization(observed, moves)
        return moves


def predicted_utilization(observed: Observation, moves: Sequence[Move]) -> NDArray[np.float64]:
    """Predicted utilization by the paper's estimate, shape (workers,); idle receivers stay idle."""
    receivers = np.array([move.receiver for move in moves], np.int64)
    gained = np.bincount(receivers, observed.processed[[move.partition for move in moves]], observed.workers)
    return np.asarray(observed.utilization * (1 + gained / np.maximum(1, observed.processed_by_worker)))
