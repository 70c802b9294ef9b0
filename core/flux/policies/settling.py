"""A controller that goes on evening out, ever more finely, while nothing changes. Not in the paper."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.multi_move import SeveralMoves
from adapt.core.flux.policies.round_controller import MIN_COLLECTION_S, PacedController
from adapt.core.stage.movement.controller import Move, Observation, Round

PATIENCE_S = 0.5
"""How long statistics add up at least before they are acted on."""

MEMORY_S = 4.0
"""Statistics that are older count for less and less."""

ERRORS = 4.0
"""By how many standard errors two workers must differ."""

WORTHWHILE = 0.05
"""By what share the highest utilization must be to fall for moves by the statistics of one round."""

SATURATED = 0.95
"""The utilization below which a worker is no bottleneck, so that it would gain nothing by giving."""


IDLE = 0.015
"""Fine moves cease where less of all CPU than this is idle: they could gain no more."""


class SettlingController:
    """Several moves a round while workers are far apart, then fine ones by statistics that add up as long as none moves.

    The threshold of the paper, 1.2, leaves a stage some 7 % below what it could do, while one partition of 64 is only
    1.6 % of a worker. But in a collection of 150 ms a worker processes 3,300 tuples, a count that is 2 % off by chance.
    Here the threshold is as far above 1 as chance makes likely, so that it falls with the time since the last move; the
    added statistics tell what a tuple costs a receiver that is busy.

    Fine moves after which the stage does no more than before make the next ones wait twice as long, and there are none
    where nearly all workers are at work all the time.
    """

    def __init__(self, coarse: SeveralMoves | None = None, min_collection_s: float = MIN_COLLECTION_S) -> None:
        """A controller of one run.

        Args:
            coarse: Decides while workers are far apart.

        Raises:
            UsageError: the least time to collect is not above 0.
        """
        self._coarse = coarse or SeveralMoves()
        self._paced = PacedController(self._coarse, min_collection_s)
        self._added: Observation | None = None
        self._patience_s = PATIENCE_S
        self._rate_before: float | None = None

    def collection_s(self, previous: Round | None) -> float:
        """As in the paper."""
        return self._paced.collection_s(previous)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """The moves of a round."""
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
        """The policy for statistics that are as sure as these are."""
        tuples = max(1.0, float(added.processed.sum()) / added.workers)
        threshold = min(1 + ERRORS / np.sqrt(tuples), self._coarse.guard.pairs.min_imbalance)
        guard = replace(self._coarse.guard, pairs=LoadBalancing(threshold, 1.0), least_cost=0.0)
        return replace(self._coarse, guard=guard, least_donor=SATURATED)


def _sum(before: Observation | None, observed: Observation) -> Observation:
    """Both together; only the later if partitions are elsewhere, as when a worker has died."""
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
