"""Receding horizon: the cheapest option over what may come next.

An option is a number of workers with a placement on them. The choice of now is held for a stage. From then on, each
possible load is taken as known, and the cheapest options for it are found by dynamic programming over option and
backlog, stage by stage.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.elastic.planning.moves import MoveCosts
from adapt.core.elastic.planning.prices import Prices
from adapt.core.elastic.planning.window_model import backlog_after, late_work

LEVELS = (0.0, 0.5, 1.0, 1.5, 2.5, 5.0, 10.0)
"""Backlogs between which costs are interpolated, in target latencies."""

LATE_FROM = 0.5
"""Mean wait from which rows are late, in target latencies: rows of the busiest worker wait longer than the mean."""

MOST_BUSY = 0.9
"""Utilization at which a backlog is taken to drain where the load is higher."""

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


def costs_ahead(outlook: Outlook, moves: MoveCosts, busy: Floats, prices: Prices, now: int, backlog: float) -> Floats:
    """Cost of going to each option now, shape (loads, options).

    Args:
        busy: Workers that can be busy with each option, shape (options,).
        now: The present option.
        backlog: Work that waits, in worker seconds.

    O(loads * stages * options^2).
    """
    terms = np.array([LATE_FROM * prices.target_s / outlook.stage_s, prices.late, backlog])
    capacity, pay = busy * outlook.stage_s, moves.counts * outlook.stage_s
    levels = np.array(LEVELS)
    return np.asarray(_costs(outlook.work, capacity, pay, moves.lost, moves.price, terms, levels, now))


_late_work = inlined(late_work)
_backlog_after = inlined(backlog_after)


@inlined
def _late_by_stop(backlog: float, lost: float, before: float, after: float) -> float:
    """Work that waits and is late only because of work lost; the limits are those before and after it."""
    return max(0.0, min(backlog, backlog + lost - after) - max(0.0, backlog - before))


@inlined
def _at_end(backlog: float, work: float, capacity: float, target: float, late: float) -> float:
    """Cost of a backlog at the end of the horizon: to do it, and what arrives late until it is drained."""
    above = max(0.0, backlog / capacity - target)
    return backlog + late * work * above / (1 - min(MOST_BUSY, work / capacity))


@inlined
def _between(costs: Floats, levels: Floats, level: float) -> float:
    """Cost at a backlog, linear between levels and beyond the last one."""
    at = 0
    while at < len(levels) - 2 and level > levels[at + 1]:
        at += 1
    slope = (costs[at + 1] - costs[at]) / (levels[at + 1] - levels[at])
    cost: float = costs[at] + slope * (level - levels[at])
    return cost


@compiled
def _costs(
    work: Floats,
    capacity: Floats,
    pay: Floats,
    lost: Floats,
    price: Floats,
    terms: Floats,
    levels: Floats,
    now: int,
) -> Floats:
    """Backward over the stages of each load.

    Args:
        terms: Wait from which rows are late in stages, price of work that is late, present backlog.
    """
    target, late, present = terms[0], terms[1], terms[2]
    loads, stages, options = work.shape[0], work.shape[1], len(pay)
    found = np.empty((loads, options))
    after, here = np.empty((options, len(levels))), np.empty((options, len(levels)))
    for load in range(loads):
        for back in range(stages):
            at = stages - 1 - back
            for j in range(options):
                limit = target * capacity[j]
                for level in range(len(levels) if at else 1):
                    begins = levels[level] * limit if at else present + lost[now, j]
                    cost = pay[j] + late * _late_work(begins, work[load, at], capacity[j], limit)
                    if not at:
                        cost += price[now, j] + late * min(present, max(0.0, begins - limit))
                    left = _backlog_after(begins, work[load, at], capacity[j])
                    if back == 0:
                        here[j, level] = cost + _at_end(left, work[load, at], capacity[j], target, late)
                        continue
                    best = _between(after[j], levels, left / limit)
                    for i in range(options):
                        if price[j, i] + after[i, 0] < best:
                            holds = target * capacity[i]
                            rest = _between(after[i], levels, (left + lost[j, i]) / holds)
                            rest += price[j, i] + late * _late_by_stop(left, lost[j, i], limit, holds)
                            best = min(best, rest)
                    here[j, level] = cost + best
            after, here = here, after
        for j in range(options):
            found[load, j] = after[j, 0]
    return found
