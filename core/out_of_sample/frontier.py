"""Frontier over windows, each budget judged out of sample."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.keys.partitioner import Channels
from adapt.core.out_of_sample.walk_forward import FEWEST_PAST, PINS
from adapt.core.out_of_sample.windows import Windows, loads_of
from adapt.core.partitioning.frontier.frontier import Frontier, frontier
from adapt.core.partitioning.frontier.search import WORK, rebalance
from adapt.core.partitioning.frontier.today import Budget, Today


def frontier_over_windows(windows: Windows, limits: Budget | None = None, work: int = WORK) -> Frontier:
    """The frontier of all windows together, each budget judged out of sample.

    For each budget and each window of the second half, a plan is built from the windows before it and measured on it;
    `Point.out_of_sample` is the median. It is None with fewer than `FEWEST_PAST` + 1 windows. Only the hottest keys of
    the past are placed, `PINS[-1]` at most; `Point.placed` has the shape of `windows.keys`.

    Args:
        limits: Limits that every point keeps to.
        work: Comparisons of each search (`rebalance`).
    """
    rows, today = _before(windows, len(windows))
    first = max(FEWEST_PAST, len(windows) // 2)
    tested = [(upto, *_before(windows, upto)) for upto in range(first, len(windows))]
    points = []
    for point in frontier(today, limits, work).points:
        later = [
            _imbalance(windows, at, _placed(windows, past, rebalance(known, point.budget, work=work)))
            for at, past, known in tested
        ]
        median = float(np.median(later)) if later else None
        points.append(replace(point, placed=_placed(windows, rows, point.placed), out_of_sample=median))
    return Frontier.of_points(points)


def _before(windows: Windows, upto: int) -> tuple[NDArray[np.int64], Today]:
    """The hottest keys of the windows before one, by row, and what is known of them."""
    past = windows.shares[:, :upto].sum(axis=1)
    rows = np.sort(np.argsort(-past, kind="stable")[: PINS[-1]])
    loads, home = past[rows], windows.home[rows]
    on = windows.loads[:, :upto].sum(axis=1)
    residual = np.maximum(on - np.bincount(home, loads, len(on)), 0.0)
    return rows, Today(loads, loads, home, residual, windows.capacities, float(past.sum() - loads.sum()))


def _placed(windows: Windows, rows: NDArray[np.int64], channels: Channels) -> Channels:
    """The channel of every key, today's but for some rows."""
    placed = windows.home.copy()
    placed[rows] = channels
    return placed


def _imbalance(windows: Windows, at: int, placed: Channels) -> float:
    """The imbalance of a placement in one window."""
    return float(windows.imbalances(loads_of(placed, windows.shares[:, at : at + 1], windows.capacities))[0])
