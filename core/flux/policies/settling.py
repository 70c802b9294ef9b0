"""Settling controller: balances with growing precision while the load is stable.

Not in the paper.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adapt.core.flux.policies.guarded_policy import SeveralMoves
from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S, LoadBalancing, PacedController
from adapt.core.stage.movement.controller import Move, Observation, Round

PATIENCE_S = 0.5
"""Minimum accumulation of statistics before fine moves."""

MEMORY_S = 4.0
"""Age from which statistics are halved."""

ERRORS = 4.0
"""Standard errors by which two workers must differ."""

WORTHWHILE = 0.05
"""Relative fall of the highest utilization that triggers moves by one round's statistics."""

SATURATED = 0.95
"""Utilization below which a worker is not a bottleneck and need not give."""


IDLE = 0.015
"""Idle share of all CPU below which fine moves stop, since they can gain no more."""


class SettlingController:
    """Several coarse moves per round, then fine moves by accumulated statistics.

    The paper's threshold of 1.2 leaves a stage about 7 % below capacity, although one partition of 64 is only 1.6 % of
    a worker. But in a collection of 150 ms a worker processes 3,300 tuples, a count with a random error of 2 %. Here
    the threshold above 1 follows the random error, so it falls with the time since the last move; the accumulated
    statistics also give the cost per tuple on a busy receiver.

    After fine moves that did not raise throughput, the next ones wait twice as long. There are none while nearly all
    workers are always busy.
    """

    def __init__(self, coarse: SeveralMoves | None = None, min_collection_s: float = MIN_COLLECTION_S) -> None:
        """Start a controller for one run.

        Args:
            coarse: Policy for large differences.
        """
        self._coarse = coarse or SeveralMoves()
        self._paced = PacedController(self._coarse, min_collection_s)
        self._added: Observation | None = None
        self._patience_s = PATIENCE_S
        self._rate_before: float | None = None

    def collection_s(self, previous: Round | None) -> float:
        """Collection time as in the paper."""
        return self._paced.collection_s(previous)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round."""
        moves, predicted = self._coarse.foreseen(observed)
        if moves and predicted.max() <= (1 - WORTHWHILE) * observed.utilization.max():
            self._added, self._rate_before, self._patience_s = None, None, PATIENCE_S
            return moves
        self._added = added = _sum(self._added, observed)
        if added.collected_s.mean() < self._patience_s:
            return ()
        rate = float(added.processed.sum() / added.collected_s.mean())
        if self._rate_before is not None:
            self._patience_s = PATIENCE_S if rate > self._rate_before else 2 * self._patience_s
            self._rate_before = None
            if added.collected_s.mean() < self._patience_s:
                return ()
        moves = self._fine(added).plan(added) if added.utilization.mean() < 1 - IDLE else ()
        if moves:
            self._added, self._rate_before = None, rate
        elif added.collected_s.mean() > MEMORY_S:
            self._added = _halved(added)
        return moves

    def _fine(self, added: Observation) -> SeveralMoves:
        """The policy with a threshold that matches the random error of these statistics."""
        tuples = max(1.0, float(added.processed.sum()) / added.workers)
        threshold = min(1 + ERRORS / np.sqrt(tuples), self._coarse.guard.pairs.min_imbalance)
        guard = replace(self._coarse.guard, pairs=LoadBalancing(threshold, 1.0), least_cost=0.0)
        return replace(self._coarse, guard=guard, least_donor=SATURATED)


def _sum(before: Observation | None, observed: Observation) -> Observation:
    """Sum of both; only the later if owners differ, such as after a crash."""
    if before is None or before.workers != observed.workers or not np.array_equal(before.owners, observed.owners):
        return observed
    return replace(
        observed,
        collected_s=before.collected_s + observed.collected_s,
        idle_s=before.idle_s + observed.idle_s,
        processed=before.processed + observed.processed,
    )


def _halved(added: Observation) -> Observation:
    return replace(
        added, collected_s=added.collected_s / 2, idle_s=added.idle_s / 2, processed=(added.processed + 1) // 2
    )
