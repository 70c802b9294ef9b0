"""Plans to choose from, judged out of sample where there are windows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.keys.partitioner import Channels
from adapt.core.out_of_sample.walk_forward import MOST_HOT, PINS, Moves, Walk
from adapt.core.out_of_sample.windows import Whole, Windows
from adapt.core.partitioning.frontier.bound import bound_of_today
from adapt.core.partitioning.frontier.frontier import Frontier, Point, points_of
from adapt.core.partitioning.frontier.search import rebalance
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget, Today
from adapt.core.partitioning.schemes.explicit import ExplicitMap

WORK = 1_000_000
"""Comparisons of each search: a few thousandths of a second."""


@dataclass(frozen=True)
class Choices:
    """Plans within limits: by budget, and those of a walk."""

    whole: Whole
    walk: Walk | None  # judges the plans on later windows, within the same limits; None judges in-sample
    limits: Budget = NO_LIMITS

    def frontier(self, recommended: ExplicitMap | None = None, later: float | None = None) -> Frontier:
        """The best of the plans, with one to be marked.

        Args:
            recommended: The pins of that plan; None marks none.
            later: Its median imbalance in later windows.
        """
        every = self._judged
        if recommended is None:
            return Frontier.of_points(every, None, self._today)
        placed = self.whole.placed(recommended)
        is_moved = placed != self.whole.home
        marked = None
        if not np.delete(is_moved, self._rows).any():
            own = placed[self._rows]
            marked = next((point for point in every if np.array_equal(point.placed, own)), None)
        if marked is None:
            share, reached = self.whole.effect(recommended)
            bound = min(bound_of_today(self._today, Budget(None, len(recommended))), reached)
            marked = Point(NO_LIMITS, placed, int(is_moved.sum()), share, reached, bound, proved=False)
        marked = marked if later is None else replace(marked, out_of_sample=later)
        return Frontier.of_points(every, marked, self._today)

    def within(self) -> tuple[Frontier, ExplicitMap]:
        """The frontier, and the pins of its best point."""
        found = self.frontier()
        point = found.within(self.limits)
        return replace(found, recommended=point), self.whole.pins(self._rows, point.placed)

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Rows of the keys that some plan may pin."""
        hottest = self.whole.hottest(MOST_HOT)
        pinned = [self.whole.hottest(0), *(np.flatnonzero(placed != self.whole.home) for placed in self._walked)]
        return np.unique(np.concatenate([hottest, *pinned]))

    @cached_property
    def _walked(self) -> list[Channels]:
        """Channel of every key in each plan built from all windows."""
        if self.walk is None:
            return []
        keys = self.walk.windows.keys
        plans = self.walk.plans[len(self.walk.windows)]
        return [self.whole.placed(ExplicitMap(keys.take(plan.rows), plan.channels)) for plan in plans[: 1 + len(PINS)]]

    @cached_property
    def _today(self) -> Today:
        return self.whole.today(self._rows)

    @cached_property
    def _judged(self) -> list[Point]:
        """Every plan; with windows, judged by the same rule from the first of them and kept."""
        points = points_of(self._today, self.limits, WORK)
        if self.walk is None:
            return points
        windows, past = self.walk.windows, self.walk.past
        rules: list[tuple[Point, Callable[[], Moves]]] = [
            (point, partial(_rebalanced, windows, point.budget, past)) for point in points
        ]
        for size, placed in enumerate(self._walked):
            own = placed[self._rows]
            pins = self._today.pins(own)
            point = self._point(own, Budget(None, pins).within(self.limits))
            if pins and point.keeps(self.limits):
                rules.append((point, partial(self.walk.plans[past].__getitem__, size)))
        return [replace(point, out_of_sample=self.walk.median(rule())) for point, rule in rules]

    def _point(self, placed: Channels, budget: Budget) -> Point:
        """The point of a placement of the hottest keys that is given."""
        today, moved = self._today, self._today.moved_share(placed)
        reached, pins = today.imbalance(placed), today.pins(placed)
        bound = bound_of_today(today, budget)
        return Point(budget, placed, pins, moved, reached, min(bound, reached), proved=False)


def _rebalanced(windows: Windows, budget: Budget, upto: int) -> Moves:
    """The plan within a budget from the windows before one."""
    past = windows.shares[:, :upto].sum(axis=1)
    rows = np.sort(np.argsort(-past, kind="stable")[: PINS[-1]])
    loads, home = past[rows], windows.home[rows]
    on = windows.loads[:, :upto].sum(axis=1)
    residual = np.maximum(on - np.bincount(home, loads, len(on)), 0.0)
    today = Today(loads, loads, home, residual, windows.capacities, float(past.sum() - loads.sum()))
    placed = rebalance(today, budget, work=WORK)
    is_moved = placed != home
    return Moves(rows[is_moved], placed[is_moved], {})
