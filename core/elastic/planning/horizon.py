"""Receding horizon: the cheapest workers over what may come next.

The choice of now is held until a rescale could follow, whatever comes. From then on, each possible load is taken as
known, and the cheapest workers for it are found by dynamic programming, stage by stage.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.elastic.planning.moves import MoveCosts
from adapt.core.elastic.planning.prices import Prices
from adapt.core.elastic.planning.window_model import backlog_after, late_work

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Possible loads of the coming stages.

    Attributes:
        stage_s: Length of a stage.
        work: Worker seconds that may arrive in each stage; the loads are equally likely. Shape (loads, stages).
    """

    stage_s: float
    work: Floats


def costs_ahead(
    outlook: Outlook, moves: MoveCosts, busy: Floats, prices: Prices, workers: int, backlog: float
) -> Floats:
    """Expected cost of going to each number of workers now, shape (counts,).

    Args:
        busy: Workers that can be busy with each count, shape (counts,).
        workers: Present workers, one of the counts of `moves`.
        backlog: Work that waits, in worker seconds.

    O(loads * stages * counts^2).
    """
    first = int(np.searchsorted(moves.counts, workers))
    terms = np.array([prices.target_s / outlook.stage_s, prices.late, backlog])
    capacity, pay = busy * outlook.stage_s, moves.counts * outlook.stage_s
    return np.asarray(_costs(outlook.work, capacity, pay, moves.lost, moves.price, moves.stop, terms, first))


_late_work = inlined(late_work)
_backlog_after = inlined(backlog_after)

MOST_BUSY = 0.9
"""Utilization at which a backlog is taken to drain where the load is higher."""


@inlined
def _late_until_drained(backlog: float, work: float, capacity: float, target: float) -> float:
    """Work that arrives until a backlog is down to the target latency."""
    return work * max(0.0, backlog / capacity - target) / (1 - min(MOST_BUSY, work / capacity))


@compiled
def _costs(
    work: Floats,
    capacity: Floats,
    pay: Floats,
    lost: Floats,
    price: Floats,
    stop: Floats,
    terms: Floats,
    first: int,
) -> Floats:
    """Backward over the stages of each load, without a backlog from the third stage on.

    Args:
        terms: Target latency in stages, price of work that is late, present backlog.
    """
    target, late, present = terms[0], terms[1], terms[2]
    loads, stages, counts = work.shape[0], work.shape[1], len(pay)
    found = np.zeros(counts)
    after, here = np.empty(counts), np.empty(counts)
    for load in range(loads):
        after[:] = 0.0
        for back in range(stages - 2):
            at = stages - 1 - back
            for j in range(counts):
                left = _backlog_after(0.0, work[load, at], capacity[j])
                is_late = _late_work(0.0, work[load, at], capacity[j], target * capacity[j])
                here[j] = after[j] + pay[j] + late * is_late + (1 + late) * left
            for i in range(counts):
                after[i] = here[i]
                for j in range(counts):
                    waits = late * _late_until_drained(stop[i, j], work[load, at], capacity[j], target)
                    after[i] = min(after[i], here[j] + price[i, j] + lost[i, j] - stop[i, j] + waits)
        for j in range(counts):
            begins = present + lost[first, j]
            best = np.inf
            left = _backlog_after(begins, work[load, 0], capacity[j])
            for i in range(counts):
                is_late = _late_work(left + lost[j, i], work[load, 1], capacity[i], target * capacity[i])
                rest = _backlog_after(left + lost[j, i], work[load, 1], capacity[i])
                ends = rest + late * _late_until_drained(rest, work[load, 1], capacity[i], target)
                best = min(best, price[j, i] + pay[i] + late * is_late + ends + after[i])
            limit = target * capacity[j]
            held = late * _late_work(begins, work[load, 0], capacity[j], limit)
            held += late * min(present, max(0.0, begins - limit))  # what waits already
            found[j] += price[first, j] + pay[j] + held + best
    found /= loads
    return found
