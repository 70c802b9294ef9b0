"""Plan ahead: learns load and rescale costs, plans over a receding horizon."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.planning.horizon import costs_ahead
from adapt.core.elastic.planning.moves import MoveCosts
from adapt.core.elastic.planning.outlook import Past
from adapt.core.elastic.planning.prices import Prices
from adapt.core.stage.control.workers import Seen

NEW = 0.3
"""Weight of a new measurement in a running mean."""

WORTHWHILE = 0.01
"""A rescale must save at least this share of the expected cost."""

Floats = NDArray[np.float64]


@dataclass(slots=True)
class _Begun:
    """A rescale of the policy's own, until it sees what came of it."""

    at_s: float
    workers: int
    waiting: int
    moved_bytes: int


class PlanAhead:
    """Chooses the workers whose expected cost is least over a receding horizon.

    It measures the work of a row, the imbalance, the load over time, and after each rescale of its own how long it
    took, what waited because of it and what state moved. Until then a rescale is taken to cost nothing.
    """

    paces_itself: ClassVar[bool] = True

    def __init__(self, least: int, pool: int, prices: Prices) -> None:
        """Start without measurements.

        Args:
            least: Fewest workers.
            pool: Most workers.
        """
        self._counts = np.arange(least, pool + 1, dtype=np.float64)
        self._prices = prices
        self._past = Past()
        self._row_s: float | None = None
        self._imbalance = 1.0
        self._stop_s: float | None = None
        self._delay_s: float | None = None
        self._moved_bytes: float | None = None
        self._begun: _Begun | None = None

    def wanted(self, seen: Seen) -> int:
        """The number of workers with the least expected cost."""
        ends = min(seen.workers, int(self._counts[0])), max(seen.workers, int(self._counts[-1]))
        self._counts = np.arange(ends[0], ends[1] + 1, dtype=np.float64)
        self._measure(seen)
        if self._row_s is None:
            return seen.workers
        stage = 1 + round((self._delay_s or 0.0) / seen.collected_s)
        outlook = self._past.outlook(seen.collected_s, stage)
        busy = self._counts / (1 + (self._imbalance - 1) * np.sqrt(self._counts / seen.workers))
        costs = costs_ahead(outlook, self._moves(busy), busy, self._prices, seen.workers, seen.waiting * self._row_s)
        stay = float(costs[seen.workers - int(self._counts[0])])
        best = int(np.argmin(costs))
        if costs[best] >= stay * (1 - WORTHWHILE):
            return seen.workers
        wanted = int(self._counts[best])
        self._begun = _Begun(seen.at_s, seen.workers, seen.waiting, seen.moved_bytes)
        return wanted

    def _measure(self, seen: Seen) -> None:
        """Learn from the last period, and from a rescale that is over."""
        processed = int(seen.processed.sum())
        if processed:
            self._row_s = _mixed(self._row_s, float(seen.busy_s.sum()) / processed)
        if self._row_s is None:
            return
        rate = seen.arrived / seen.collected_s * self._row_s
        self._past.add(seen.at_s, seen.collected_s, rate)
        if processed > 10 * seen.workers:
            self._imbalance = _mixed(self._imbalance, seen.imbalance)
        begun, self._begun = self._begun, None
        if begun is not None and begun.workers != seen.workers and rate > 0:
            took_s = max(0.0, seen.at_s - begun.at_s - seen.collected_s / 2)
            waited_s = (seen.waiting - begun.waiting) * self._row_s / rate
            share = abs(seen.workers - begun.workers) / max(seen.workers, begun.workers)
            self._stop_s = _mixed(self._stop_s, min(took_s, max(0.0, waited_s)))
            self._delay_s = _mixed(self._delay_s, took_s)
            self._moved_bytes = _mixed(self._moved_bytes, (seen.moved_bytes - begun.moved_bytes) / share)

    def _moves(self, busy: Floats) -> MoveCosts:
        """What rescales cost, as far as measured; state moves by the share of the workers that come or go."""
        before, after = self._counts[:, None], self._counts[None, :]
        share = np.abs(after - before) / np.maximum(before, after)
        stop_s, delay_s = (np.full_like(share, one or 0.0) for one in (self._stop_s, self._delay_s))
        return MoveCosts.priced(self._counts, stop_s, delay_s, share * (self._moved_bytes or 0.0), self._prices, busy)


def _mixed(before: float | None, new: float) -> float:
    """A running mean."""
    return new if before is None else (1 - NEW) * before + NEW * new
