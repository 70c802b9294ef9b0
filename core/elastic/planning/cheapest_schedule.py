"""The cheapest schedule of workers for a known load, by dynamic programming.

A state is the number of workers and the backlog. Of the ways to a number of workers, those stay that no other way beats
in both cost and backlog, since more backlog never costs less later. So the backlog is not rounded.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.elastic.planning.known_load import KnownLoad
from adapt.core.elastic.planning.moves import MoveCosts
from adapt.core.elastic.planning.prices import Prices
from adapt.core.elastic.planning.window_model import backlog_after, late_work, price_at_end

WAYS = 256
"""Most ways that are kept to each number of workers."""

CLOSE = 1e-4
"""Ways whose costs differ by less, of the cost of all, count as one; more if there are more than `WAYS`."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Workers by window.

    Attributes:
        window_s: Length of a window.
        workers: Workers in each window, shape (windows,).
        cost: Cost in the fluid model, in worker seconds.
        gap: The least cost in the model is at most this much lower.
    """

    window_s: float
    workers: NDArray[np.int64]
    cost: float
    gap: float

    def at(self, at_s: float) -> int:
        """Workers at a time; the last ones after the end."""
        return int(self.workers[min(int(at_s / self.window_s * (1 + 1e-9)), len(self.workers) - 1)])


def cheapest_schedule(load: KnownLoad, moves: MoveCosts, prices: Prices, start: int, used: float = 1.0) -> Schedule:
    """The schedule of least cost in the fluid model; see `cost_of_schedule`.

    Args:
        start: Workers before the first window, one of the counts of `moves`.
        used: Share of its time in which a worker can work, in (0, 1].

    O(windows * counts^2 * ways log ways).
    """
    capacity, pay = moves.counts * used * load.window_s, moves.counts * load.window_s
    first = int(np.searchsorted(moves.counts, start))
    chosen = np.empty(len(load.work), np.int64)
    terms = np.array([prices.target_s / load.window_s, prices.late, _close_to_all(load, moves) / len(load.work)])
    cost, gap = _search(load.work, capacity, pay, moves.lost, moves.price, terms, first, chosen)
    return Schedule(load.window_s, moves.counts[chosen].astype(np.int64), float(cost), float(gap))


def cost_of_schedule(
    workers: NDArray[np.int64], load: KnownLoad, moves: MoveCosts, prices: Prices, start: int, used: float = 1.0
) -> float:
    """Cost of a schedule in the fluid model."""
    capacity, cost, backlog, before = moves.counts * used * load.window_s, 0.0, 0.0, start
    target, late = prices.target_s / load.window_s, prices.late
    limit = 1.0
    for work, count in zip(load.work.tolist(), workers.tolist(), strict=True):
        i, j = (int(np.searchsorted(moves.counts, one)) for one in (before, count))
        backlog += float(moves.lost[i, j])
        can, limit = float(capacity[j]), target * float(capacity[j])
        cost += count * load.window_s + float(moves.price[i, j]) + late * late_work(backlog, work, can, limit)
        backlog, before = backlog_after(backlog, work, can), count
    return cost + price_at_end(backlog, limit, late)


def _close_to_all(load: KnownLoad, moves: MoveCosts) -> float:
    """The cost difference that does not matter in all windows together."""
    return CLOSE * max(float(load.work.sum()), float(moves.counts[0]) * load.window_s * len(load.work))


_late_work = inlined(late_work)
_backlog_after = inlined(backlog_after)
_price_at_end = inlined(price_at_end)


@compiled
def _search(
    work: Floats,
    capacity: Floats,
    pay: Floats,
    lost: Floats,
    price: Floats,
    terms: Floats,
    first: int,
    chosen: NDArray[np.int64],
) -> tuple[float, float]:
    """Fill `chosen` with the index of the count in each window.

    Args:
        terms: Target latency in windows, price of work that is late, cost difference that does not matter in a window.

    Returns:
        The least cost, and how much merging ways may have added to it.
    """
    windows, counts = len(work), len(capacity)
    target, late, close = terms[0], terms[1], terms[2]
    backlogs, costs = np.zeros((counts, WAYS)), np.zeros((counts, WAYS))
    sizes = np.zeros(counts, np.int64)
    sizes[first] = 1
    came_from = np.zeros((windows, counts, WAYS), np.int64)
    gap = 0.0
    for at in range(windows):
        next_backlogs, next_costs = np.zeros((counts, WAYS)), np.zeros((counts, WAYS))
        next_sizes = np.zeros(counts, np.int64)
        widest = close
        for j in range(counts):
            total = sizes.sum()
            all_b, all_c, all_from = np.empty(total), np.empty(total), np.empty(total, np.int64)
            n = 0
            for i in range(counts):
                for way in range(sizes[i]):
                    backlog = backlogs[i, way] + lost[i, j]
                    is_late = late * _late_work(backlog, work[at], capacity[j], target * capacity[j])
                    all_c[n] = costs[i, way] + price[i, j] + pay[j] + is_late
                    all_b[n] = _backlog_after(backlog, work[at], capacity[j])
                    all_from[n] = i * WAYS + way
                    n += 1
            by_cost = np.argsort(all_c, kind="mergesort")
            order = by_cost[np.argsort(all_b[by_cost], kind="mergesort")]
            step = close
            kept = WAYS + 1
            while kept > WAYS:
                kept, best = 0, np.inf
                for one in order:
                    if kept == 0 or all_c[one] < best - step:
                        if kept < WAYS:
                            next_backlogs[j, kept], next_costs[j, kept] = all_b[one], all_c[one]
                            came_from[at, j, kept] = all_from[one]
                        best = all_c[one]
                        kept += 1
                widest = max(widest, step)
                step *= 2
            next_sizes[j] = kept
        gap += widest
        backlogs, costs, sizes = next_backlogs, next_costs, next_sizes
    best, end, end_way = np.inf, 0, 0
    for j in range(counts):
        for way in range(sizes[j]):
            whole = costs[j, way] + _price_at_end(backlogs[j, way], target * capacity[j], late)
            if whole < best:
                best, end, end_way = whole, j, way
    for back in range(windows):
        at = windows - 1 - back
        chosen[at] = end
        source = came_from[at, end, end_way]
        end, end_way = source // WAYS, source % WAYS
    return best, gap
