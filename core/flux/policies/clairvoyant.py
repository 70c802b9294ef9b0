"""Optimum policy: knows the future, as a bound for the others.

Not in the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.flux.policies.assignment import Assignment, Demand, assign, bound_s
from adapt.core.stage.conditions.arrivals import Rows, Source
from adapt.core.stage.conditions.disturbances import ExternalLoad
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.movement.controller import Move, Observation, Round
from adapt.core.stage.movement.spilling import Memory

HORIZON_S = 1.0
"""Lookahead."""

WORTHWHILE = 0.02
"""Relative improvement of the bottleneck that triggers moves."""

LEAST_SPEED = 1e-3
"""Speed of a paused worker, to avoid division by zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """Knowledge of a run in advance."""

    settings: StageSettings  # the stage and its disturbances
    work_s: NDArray[np.float64]  # CPU seconds of each partition per tuple of the period, shape (periods, partitions)
    period_s: float  # length of a period; infinite for a single one
    memory: Memory | None = None  # memory limits, if any

    def demand(self, from_s: float, to_s: float) -> Demand:
        """Mean work and speeds between two times, and the smallest memory."""
        last = len(self.work_s) - 1
        first, end = (min(last, int(at / self.period_s)) for at in (from_s, to_s))
        return Demand(
            work_s=self.work_s[first : end + 1].mean(axis=0),
            fixed_s=self.settings.costs.produce_s / self.settings.workers,
            speeds=np.array([self._speed(worker, from_s, to_s) for worker in range(self.settings.workers)]),
            sizes=(self.settings.state_sizes() * self.settings.costs.tuple_bytes).astype(np.float64),
            room=self._room(to_s),
        )

    def bound_rate(self, from_s: float, to_s: float) -> float:
        """Upper bound of the throughput between two times.

        Assignments are fixed within each lookahead step. Tuples buffered at the start may come on top.
        """
        starts = np.arange(from_s, to_s, HORIZON_S)
        ends = np.minimum(starts + HORIZON_S, to_s)
        rates = [1 / bound_s(self.demand(*times)) for times in zip(starts.tolist(), ends.tolist(), strict=True)]
        return float(np.average(rates, weights=ends - starts))

    def _speed(self, worker: int, from_s: float, to_s: float) -> float:
        lost = 0.0
        for one in self.settings.disturbances:
            if one.worker == worker:
                speed = one.kept if isinstance(one, ExternalLoad) else one.speed
                lost += (1 - speed) * max(0.0, min(one.end_s, to_s) - max(one.start_s, from_s))
        return max(LEAST_SPEED, 1 - lost / (to_s - from_s))

    def _room(self, to_s: float) -> NDArray[np.float64]:
        if self.memory is None:
            return np.full(self.settings.workers, np.inf)
        room = np.full(self.settings.workers, self.memory.worker_bytes)
        for change in sorted(self.memory.changes, key=lambda one: one.at_s):
            if change.at_s <= to_s:
                room[change.worker] = change.bytes
        return room


def ahead_of(settings: StageSettings, source: Source, memory: Memory | None = None, period_s: float = 1.0) -> Ahead:
    """Knowledge of a run from its settings and source.

    Args:
        source: The tuples; a stream is read once and counted.
        memory: Memory limits, if any.
        period_s: Resolution of the load over time. Rows without arrival times count as processed at the full rate of
            the stage.
    """
    if not period_s > 0:
        raise UsageError(f"the period must be above 0 (got {period_s:g} s)")
    costs, groups = settings.costs, len(settings.partition_of)
    if not isinstance(source, Rows):
        shares = np.ones(groups) if source.shares is None else source.shares
        by_partition = np.bincount(settings.partition_of, shares, settings.partitions)
        return Ahead(settings, costs.service_s * by_partition[None] / shares.sum(), np.inf, memory)
    rows_a_period = period_s * settings.workers / (costs.service_s + costs.produce_s)
    work_s, counts = np.zeros((1, settings.partitions)), np.zeros(1)
    rows = 0
    for chunk in source.chunks():
        ranks = np.arange(rows, rows + len(chunk.groups))
        rows += len(ranks)
        at = (ranks / rows_a_period if chunk.due_s is None else chunk.due_s / period_s).astype(np.int64)
        more = max(0, int(at.max(initial=0)) + 1 - len(work_s))
        work_s = np.concatenate([work_s, np.zeros((more, settings.partitions))])
        counts = np.concatenate([counts, np.zeros(more)])
        first = int(at.min(initial=len(work_s) - 1))
        cost_s = np.full(len(ranks), costs.service_s) if chunk.cost_s is None else chunk.cost_s
        cells = (at - first) * settings.partitions + settings.partition_of[chunk.groups]
        periods = len(work_s) - first
        work_s[first:] += np.bincount(cells, cost_s, periods * settings.partitions).reshape(periods, -1)
        counts[first:] += np.bincount(at - first, minlength=periods)
    return Ahead(settings, work_s / np.maximum(1.0, counts)[:, None], period_s, memory)


class OptimumController:
    """Optimum controller: assigns partitions by the known future load.

    Every round considers the mean load over the lookahead. Partitions move if the bottleneck improves enough, or if
    state does not fit.

    Attributes:
        found: Assignments made, with their gaps.
    """

    def __init__(self, ahead: Ahead, collection_s: float, horizon_s: float = HORIZON_S) -> None:
        """Start a controller for one run.

        Args:
            collection_s: Time between moves and the next round.
            horizon_s: Lookahead.
        """
        if not (collection_s > 0 and horizon_s > 0):
            raise UsageError(
                f"collection time and lookahead must be above 0 (got {collection_s:g} and {horizon_s:g} s)"
            )
        self._ahead, self._round_s, self._horizon_s = ahead, collection_s, horizon_s
        self.found: list[Assignment] = []

    def collection_s(self, previous: Round | None) -> float:  # noqa: ARG002
        """A constant collection time."""
        return self._round_s

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves from the current owners to the assignment."""
        if observed.workers != self._ahead.settings.workers:
            return ()
        demand = self._ahead.demand(observed.at_s, observed.at_s + self._horizon_s)
        demand = replace(demand, sizes=observed.state_bytes.astype(np.float64))
        present, fits = demand.slowest_s(observed.owners), demand.fits(observed.owners)
        if fits and present <= (1 + WORTHWHILE) * bound_s(demand):
            return ()
        found = assign(observed.owners, demand)
        if fits and present <= (1 + WORTHWHILE) * found.slowest_s:
            return ()
        self.found.append(found)
        leaving = np.flatnonzero(found.owners != observed.owners).tolist()
        return tuple(Move(one, int(observed.owners[one]), int(found.owners[one])) for one in leaving)
