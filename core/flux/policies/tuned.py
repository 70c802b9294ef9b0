"""A controller that finds by itself how long to collect. Not in the paper, which leaves it as a direction."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.flux.policies.round_controller import MIN_COLLECTION_S, PacedController, Policy
from adapt.core.stage.movement.controller import Move, Observation, Round

LEAST_S, MOST_S = 0.05, 5.0
"""Between what delta_min stays, unless it begins outside."""

TOLERANCE = 0.2
"""By how much a receiver may be busier than predicted."""

REMEMBERED_ROUNDS = 20
"""For how long a partition that comes back has not been worth moving."""

RAISED, LOWERED = 2.0, 0.8
"""What becomes of the least collection time after a round that went wrong, and after one that did not."""


class TunedController:
    """Collects longer after moves that turn out wrong, and shorter again while they turn out as predicted.

    A round went wrong if in the next one a receiver is busier than the paper's estimate u_j (1 + n_p / N_j) by more
    than 0.2, and busier than its donor, or if it brings a partition back to a worker that it has left in the last rounds.
    A receiver that is only busier than predicted works off what producers held back of the partition while it moved.

    Attributes:
        min_collection_s: What delta_min is at present.
    """

    def __init__(self, policy: Policy, begin_s: float = MIN_COLLECTION_S) -> None:
        """A controller of one run.

        Args:
            begin_s: Where delta_min begins.

        Raises:
            UsageError: that is not above 0.
        """
        self._paced = PacedController(policy, begin_s)
        self._least_s, self._most_s = min(begin_s, LEAST_S), max(begin_s, MOST_S)
        self._moves: tuple[Move, ...] = ()
        self._predicted: NDArray[np.float64] = np.empty(0)
        self._left: deque[frozenset[tuple[int, int]]] = deque(maxlen=REMEMBERED_ROUNDS)
        self.min_collection_s = begin_s

    def collection_s(self, previous: Round | None) -> float:
        """As in the paper, with delta_min as it is at present."""
        return replace(self._paced, min_collection_s=self.min_collection_s).collection_s(previous)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """The moves of a round, which tell with the statistics before and after whether to collect longer."""
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
    """u_j' of receivers by the paper's estimate, shape (workers,); one that processed nothing stays as idle as it is."""
    receivers = np.array([move.receiver for move in moves], np.int64)
    gained = np.bincount(receivers, observed.processed[[move.partition for move in moves]], observed.workers)
    return np.asarray(observed.utilization * (1 + gained / np.maximum(1, observed.processed_by_worker)))
