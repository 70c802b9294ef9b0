"""Recurring policy: moves partitions ahead of load that recurs.

Not in the paper, which names load by the time of day (section 2.2) and reacts to it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.flux.policies.season import Season
from adapt.core.flux.policies.settling import SettlingController
from adapt.core.stage.movement.controller import Move, Observation, Round

DAY_S = 86_400.0

PHASES = 48
"""Equal parts of a season."""

FORGOTTEN = 0.5
"""Factor of what was learned, once a season."""

LEAST_STALL_S = 0.05
"""Assumed duration of a move before one was seen."""

FULL = 0.98
"""Utilization from which a queue counts as growing."""


class Seasons:
    """Mean load of each partition by phase of the season.

    A phase that was never seen has no load of its own: `change` is 0 for it.
    """

    def __init__(self, season_s: float) -> None:
        """Begin without knowledge.

        Args:
            season_s: Length of a season in simulated seconds.
        """
        self.phase_s = season_s / PHASES
        self._tuples: NDArray[np.float64] = np.empty((PHASES, 0))
        self._seconds: NDArray[np.float64] = np.zeros(PHASES)
        self._season = 0

    def learn(self, from_s: float, to_s: float, tuples: NDArray[np.int64]) -> None:
        """Add the tuples of each partition between two times."""
        if self._tuples.shape[1] != len(tuples):
            self._tuples = np.zeros((PHASES, len(tuples)))
        season = int(to_s // (self.phase_s * PHASES))
        for many in (self._tuples, self._seconds):
            many *= FORGOTTEN ** (season - self._season)
        self._season = season
        overlap_s = self._overlap_s(from_s, to_s)
        self._seconds += overlap_s
        self._tuples += np.outer(overlap_s / overlap_s.sum(), tuples)

    def rates(self, from_s: float, to_s: float) -> NDArray[np.float64] | None:
        """Learned tuples per second, shape (partitions,); None if unknown."""
        overlap_s = self._overlap_s(from_s, to_s) * (self._seconds > 0)
        if overlap_s.sum() < (to_s - from_s) / 2:
            return None
        by_phase = self._tuples / np.maximum(self._seconds, 1e-12)[:, None]
        return np.asarray(overlap_s @ by_phase / overlap_s.sum())

    def _overlap_s(self, from_s: float, to_s: float) -> NDArray[np.float64]:
        """Seconds of each phase between two times, shape (phases,)."""
        phases = np.arange(int(from_s // self.phase_s), int(to_s // self.phase_s) + 1)
        starts = np.maximum(from_s, phases * self.phase_s)
        ends = np.minimum(to_s, (phases + 1) * self.phase_s)
        return np.bincount(phases % PHASES, np.maximum(0.0, ends - starts), PHASES).astype(np.float64)


class RecurringController:
    """Balances the load that is coming instead of the present one.

    It learns the load of each partition by phase of the season, and gives the reactive policy the statistics it would
    see one lead time ahead: those of now, plus the learned change until then. The lead time is that of a round: the
    collection and the moves. In the first season, and without recurrence, nothing changes and it reacts.

    Moves have a price: partitions of one donor move one after another, and a tuple that arrives meanwhile waits for
    half of that time on average. Moves are dropped if they save fewer tuple seconds of waiting within the next phase.
    """

    def __init__(self, reactive: SettlingController, season: Season) -> None:
        """Start a controller for one run.

        Args:
            reactive: Policy that decides by the statistics to come.
            season: Time after which load recurs; before it is known, statistics are kept and not used.
        """
        self._reactive = reactive
        self._known_s = season.known_s
        self._seasons = Seasons(season.length_s)
        self._stall_s = LEAST_STALL_S

    def collection_s(self, previous: Round | None) -> float:
        """Collection time as in the paper."""
        if previous is not None and previous.moves:
            self._stall_s = previous.moving_s / max(_places(previous.moves))
        return self._reactive.collection_s(previous)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round."""
        to_s, lasted_s = observed.at_s, float(observed.collected_s.mean())
        from_s = to_s - lasted_s
        ahead_s = self._stall_s + max(lasted_s, self._seasons.phase_s)
        then = self._seasons.rates(to_s + self._stall_s, to_s + ahead_s)
        now = self._seasons.rates(from_s, to_s)
        self._seasons.learn(from_s, to_s, observed.processed)
        if to_s < self._known_s or then is None or now is None:
            coming = observed
        else:
            coming = _after(observed, (then - now) * lasted_s)
        moves = self._reactive.plan(coming)
        return moves if self._pays(coming, moves) else ()

    def _pays(self, coming: Observation, moves: Sequence[Move]) -> bool:
        """Whether moves save more waiting within a phase than they cause."""
        if not moves:
            return False
        lasted_s, partitions = float(coming.collected_s.mean()), [move.partition for move in moves]
        stalls_s = self._stall_s * np.array(_places(moves))
        stalled = coming.processed[partitions] / lasted_s @ stalls_s**2 / 2
        owners = coming.owners.copy()
        owners[partitions] = [move.receiver for move in moves]
        span_s = max(lasted_s, self._seasons.phase_s)
        saved = _waiting(coming, coming.owners, span_s) - _waiting(coming, owners, span_s)
        return bool(saved > stalled)


def _places(moves: Sequence[Move]) -> list[int]:
    """Place of each move among those of its donor, from 1."""
    donors = [move.donor for move in moves]
    return [donors[: at + 1].count(donor) for at, donor in enumerate(donors)]


def _after(observed: Observation, change: NDArray[np.float64]) -> Observation:
    """Statistics once the tuples of each partition have changed, at the present cost per tuple of each worker."""
    processed = np.maximum(0, np.rint(observed.processed + change)).astype(np.int64)
    coming = replace(observed, processed=processed)
    before, after = observed.processed_by_worker, coming.processed_by_worker
    cost = np.where(before > 0, observed.utilization / np.maximum(1, before), _mean_cost(observed))
    return replace(coming, idle_s=observed.collected_s * (1 - after * cost))


def _mean_cost(observed: Observation) -> float:
    """Utilization per tuple over all workers."""
    return float(observed.utilization.sum() / max(1, observed.processed.sum()))


def _waiting(seen: Observation, owners: NDArray[np.int32], span_s: float) -> float:
    """Tuple seconds in queues over a time, by the mean queue below full utilization and its growth above."""
    tuples = np.bincount(owners, seen.processed, seen.workers)
    before = seen.processed_by_worker
    cost = np.where(before > 0, seen.utilization / np.maximum(1, before), _mean_cost(seen))
    load = tuples * cost
    steady = np.minimum(load, FULL)
    grown = np.maximum(0.0, 1 - FULL / np.maximum(load, FULL)) * tuples / seen.collected_s * span_s**2 / 2
    return float((steady / (1 - steady) * span_s + grown).sum())
