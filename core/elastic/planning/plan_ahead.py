"""Plan ahead: learns load and move costs, plans over a receding horizon."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.planning.capacity import Capacity
from adapt.core.elastic.planning.horizon import costs_ahead
from adapt.core.elastic.planning.moves import MoveCosts, Taken
from adapt.core.elastic.planning.outlook import STAGES, Past
from adapt.core.elastic.planning.prices import Prices
from adapt.core.stage.control.workers import Seen

NEW = 0.3
"""Weight of a new measurement in a running mean."""

WORTHWHILE = 0.01
"""A move must save at least this share of the expected cost."""

SURE = 2.0
"""Standard errors, over possible loads, that it must save at least, unless it saves in nearly all."""

OFTEN = 0.8
"""Share of possible loads that are nearly all."""

SOONER = 0.2
"""What idle workers must have cost before a move to fewer that surely saves, relative to what it costs unpriced."""

MOST = 24
"""Most numbers of workers that are compared."""

Floats = NDArray[np.float64]


@dataclass(slots=True)
class _Begun:
    """A move of the policy's own, until it sees what came of it."""

    seen: Seen
    processed: int | None
    busy: float
    expected_s: tuple[float, float]


class PlanAhead:
    """Chooses workers of least expected cost over a receding horizon.

    All numbers of workers are priced by what it has measured: the work of a row, the load over time, what workers can
    do with a placement of a given imbalance, and after each move of its own how long it took, what waited because of
    it and what state moved. Until then moves are taken to be what the stage's settings say; without settings, to stop
    the stage for the target latency.

    Workers are given back as skis are bought: once they have cost, idle, what the move costs, late rows included
    (Karlin, Manasse, Rudolph, Sleator, Competitive snoopy caching, 1988); sooner if the move surely saves.
    """

    paces_itself: ClassVar[bool] = True

    def __init__(
        self, least: int, pool: int, prices: Prices, taken: Taken | None = None, past: Past | None = None
    ) -> None:
        """Start without measurements.

        Args:
            least: Fewest workers.
            pool: Most workers.
            taken: What moves take by the settings of the stage; None, not known.
            past: Foresees the load; None, from what it saw.
        """
        self._ends = least, pool
        self._prices = prices
        self._past = past or Past()
        self._capacity = Capacity()
        self._row_s: float | None = None
        self._taken = taken
        self._known: dict[int, tuple[Floats, Floats, Floats]] = {}
        self._stop_off: float | None = None if taken is None else 0.0
        self._delay_off = self._stop_off
        self._moved_bytes: float | None = None
        self._idle_s = 0.0
        self._begun: _Begun | None = None

    def wanted(self, seen: Seen) -> int:
        """The number of workers with the least expected cost."""
        self._measure(seen)
        if self._row_s is None:
            return seen.workers
        counts = _counts(min(self._ends[0], seen.workers), max(self._ends[1], seen.workers), seen.workers)
        stop_s, delay_s, moved = self._takes(counts)
        stage = 1 + round(max(float(np.median(delay_s[0])), self._prices.target_s / 2) / seen.collected_s)
        outlook = self._past.outlook(seen.collected_s, stage)
        busy = self._capacity.busy(counts.astype(np.int64), stage * STAGES)
        backlog = seen.waiting * self._row_s
        moves = MoveCosts.of_options(counts, stop_s, delay_s, moved, self._prices, busy)
        costs = costs_ahead(outlook, moves, busy, self._prices, 0, backlog)
        best = int(np.argmin(costs.mean(axis=0)))
        goes = _pays(costs[:, 0], costs[:, best])
        if counts[best] < seen.workers:
            there = costs_ahead(outlook, moves, busy, self._prices, best, backlog)[:, best]
            lost = float(np.mean(costs[:, best] - there))
            self._idle_s += float(np.mean(costs[:, 0] - costs[:, best])) / stage
            goes = self._idle_s >= (SOONER * (lost - self._prices.rescale) if goes else lost)
        if not goes:
            return seen.workers
        self._idle_s = 0.0
        able, usual_s = float(min(busy[0], busy[best])), (float(stop_s[0, best]), float(delay_s[0, best]))
        self._begun = _Begun(seen, _processed(seen), able, usual_s)
        return int(counts[best])

    def _measure(self, seen: Seen) -> None:
        """Learn from the last period, and from a move that is over."""
        processed = int(seen.processed.sum())
        if processed:
            self._row_s = _mixed(self._row_s, float(seen.busy_s.sum()) / processed)
        if self._row_s is None:
            return
        rate = seen.arrived / seen.collected_s * self._row_s
        self._past.add(seen.at_s, seen.collected_s, rate)
        begun, self._begun = self._begun, None
        self._capacity.add(seen, self._row_s, moved=begun is not None)
        if begun is None or seen.workers == begun.seen.workers:
            return
        before, in_all = begun.seen, _processed(seen)
        took_s = max(0.0, seen.at_s - before.at_s - seen.collected_s / 2)
        stop_s, delay_s = begun.expected_s
        self._delay_off = _corrected(self._delay_off, took_s - delay_s)
        if in_all is not None and begun.processed is not None:
            done = in_all - begun.processed
            could = min(begun.busy * (seen.at_s - before.at_s) / self._row_s, done + seen.waiting - before.arrived)
            if could > 0:
                stopped_s = took_s * max(0.0, 1 - done / could)
                self._stop_off = _corrected(self._stop_off, stopped_s - stop_s)
        share = abs(seen.workers - before.workers) / max(seen.workers, before.workers)
        self._moved_bytes = _mixed(self._moved_bytes, (seen.moved_bytes - before.moved_bytes) / share)

    def _takes(self, counts: Floats) -> tuple[Floats, Floats, Floats]:
        """Stop, delay and state moved of moves: as the settings say, and by how much they turned out to be off."""
        present = int(counts[0])
        if present not in self._known:
            target_s = np.full((len(counts), len(counts)), self._prices.target_s)
            self._known[present] = (target_s, target_s, 0 * target_s) if self._taken is None else self._taken(counts)
        stop_s, delay_s, moved_bytes = self._known[present]
        before, after = counts[:, None], counts[None, :]
        if self._moved_bytes is not None:
            moved_bytes = np.abs(after - before) / np.maximum(before, after) * self._moved_bytes
        stop_s, delay_s = stop_s + (self._stop_off or 0.0), delay_s + (self._delay_off or 0.0)
        return np.maximum(0.0, stop_s), np.maximum(0.0, delay_s), moved_bytes


def _pays(stay: Floats, go: Floats) -> bool:
    """Whether a move saves enough, for sure enough; costs under each load."""
    saved = stay - go
    unsure = SURE * float(saved.std()) / len(saved) ** 0.5
    is_sure = saved.mean() > unsure or np.mean(saved > 0) >= OFTEN
    return bool(is_sure and saved.mean() > WORTHWHILE * float(stay.mean()))


def _counts(least: int, most: int, present: int) -> Floats:
    """The present number of workers, for to stay, then those to choose from, the present one included."""
    spaced = np.linspace(least, most, MOST) if most - least < MOST else np.geomspace(least, most, MOST)
    return np.asarray(np.concatenate([[present], np.unique(np.append(np.rint(spaced), present))]), np.float64)


def _mixed(before: float | None, new: float) -> float:
    """A running mean."""
    return new if before is None else (1 - NEW) * before + NEW * new


def _corrected(off: float | None, error: float) -> float:
    """Correction of what was known, or of a guess, which the first measurement replaces."""
    return error if off is None else off + NEW * error


def _processed(seen: Seen) -> int | None:
    """Rows processed since the start; None without partitions."""
    return None if seen.partitions is None else int(seen.partitions().processed.sum())
