"""Plan ahead: learns load and move costs, plans over a receding horizon."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.planning.capacity import Capacity
from adapt.core.elastic.planning.horizon import costs_ahead
from adapt.core.elastic.planning.moves import MoveCosts
from adapt.core.elastic.planning.outlook import Past
from adapt.core.elastic.planning.prices import Prices
from adapt.core.stage.control.workers import Decision, Seen

NEW = 0.3
"""Weight of a new measurement in a running mean."""

WORTHWHILE = 0.01
"""A move must save at least this share of the expected cost."""

SURE = 2.0
"""Standard errors, over possible loads, that it must save at least."""

MOST = 24
"""Most numbers of workers that are compared."""

Floats = NDArray[np.float64]


@dataclass(slots=True)
class _Begun:
    """A move of the policy's own, until it sees what came of it."""

    seen: Seen
    wanted: int
    processed: int | None
    busy: float


class PlanAhead:
    """Chooses workers and placement of least expected cost over a receding horizon.

    The options are to stay, to place anew on the same workers, and to place on others. All are priced by what it has
    measured: the work of a row, the load over time, what workers can do with a placement of a given imbalance, and
    after each move of its own how long it took, what waited because of it and what state moved. Until then a move is
    taken to stop the stage for the target latency.
    """

    paces_itself: ClassVar[bool] = True

    def __init__(self, least: int, pool: int, prices: Prices) -> None:
        """Start without measurements.

        Args:
            least: Fewest workers.
            pool: Most workers.
        """
        self._ends = least, pool
        self._prices = prices
        self._past = Past()
        self._capacity = Capacity()
        self._row_s: float | None = None
        self._stop_s = self._delay_s = prices.target_s
        self._measured = False
        self._moved_bytes: float | None = None
        self._rebuilt_bytes: float | None = None
        self._begun: _Begun | None = None

    def wanted(self, seen: Seen) -> int:
        """The number of workers with the least expected cost."""
        return self.decided(seen).workers

    def decided(self, seen: Seen) -> Decision:
        """The option with the least expected cost."""
        self._measure(seen)
        if self._row_s is None:
            return Decision(seen.workers)
        counts = _counts(min(self._ends[0], seen.workers), max(self._ends[1], seen.workers), seen.workers)
        stage = 1 + round(max(self._delay_s, self._prices.target_s / 2) / seen.collected_s)
        outlook = self._past.outlook(seen.collected_s, stage)
        busy = self._capacity.busy(counts.astype(np.int64))
        backlog = seen.waiting * self._row_s
        costs = costs_ahead(outlook, self._moves(counts, busy), busy, self._prices, 0, backlog)
        best = int(np.argmin(costs.mean(axis=0)))
        if not _pays(costs[:, 0], costs[:, best]):
            return Decision(seen.workers)
        self._begun = _Begun(seen, int(counts[best]), _processed(seen), float(min(busy[0], busy[best])))
        return Decision(int(counts[best]), rebuild=int(counts[best]) == seen.workers)

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
        if begun is None or (seen.workers == begun.seen.workers != begun.wanted):
            return
        before, in_all = begun.seen, _processed(seen)
        took_s = max(0.0, seen.at_s - before.at_s - seen.collected_s / 2)
        self._delay_s = _mixed(self._delay_s if self._measured else None, took_s)
        if in_all is not None and begun.processed is not None:
            done = in_all - begun.processed
            could = min(begun.busy * (seen.at_s - before.at_s) / self._row_s, done + seen.waiting - before.arrived)
            if could > 0:
                stop_s = took_s * max(0.0, 1 - done / could)
                self._stop_s = _mixed(self._stop_s if self._measured else None, stop_s)
        self._measured = True
        moved = seen.moved_bytes - before.moved_bytes
        if before.workers == seen.workers:
            self._rebuilt_bytes = _mixed(self._rebuilt_bytes, moved)
        else:
            share = abs(seen.workers - before.workers) / max(seen.workers, before.workers)
            self._moved_bytes = _mixed(self._moved_bytes, moved / share)

    def _moves(self, counts: Floats, busy: Floats) -> MoveCosts:
        """What moves cost, as far as measured; nothing goes back to the present placement."""
        before, after = counts[:, None], counts[None, :]
        share = np.abs(after - before) / np.maximum(before, after)
        moved_bytes = share * (self._moved_bytes or 0.0)
        moved_bytes[0, before[0] == counts] = self._rebuilt_bytes or 0.0
        stop_s, delay_s = (np.full_like(share, one) for one in (self._stop_s, self._delay_s))
        return MoveCosts.of_options(counts, stop_s, delay_s, moved_bytes, self._prices, busy)


def _pays(stay: Floats, go: Floats) -> bool:
    """Whether a move saves enough, for sure enough; costs under each load."""
    saved = stay - go
    unsure = SURE * float(saved.std()) / len(saved) ** 0.5
    return bool(saved.mean() > max(WORTHWHILE * float(stay.mean()), unsure))


def _counts(least: int, most: int, present: int) -> Floats:
    """The present number of workers, for to stay, then those to choose from, the present one included."""
    spaced = np.linspace(least, most, MOST) if most - least < MOST else np.geomspace(least, most, MOST)
    return np.asarray(np.concatenate([[present], np.unique(np.append(np.rint(spaced), present))]), np.float64)


def _mixed(before: float | None, new: float) -> float:
    """A running mean."""
    return new if before is None else (1 - NEW) * before + NEW * new


def _processed(seen: Seen) -> int | None:
    """Rows processed since the start; None without partitions."""
    return None if seen.partitions is None else int(seen.partitions().processed.sum())
