"""Frontier of imbalance against state moved and pinned keys."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.frontier.bound import MOST_PAIRS, bound_of_today, exact_bound
from adapt.core.partitioning.frontier.search import WORK, rebalance
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget, Today
from adapt.core.table import Cell, Column, Kind, Table

SCHEMA = "adapt.frontier/2"

_BY_PINS, _BY_STATE = 7, 4
"""Budgets between doing nothing and the full rebuild: by pins, rising geometrically, and by state, doubling."""

_TIE = 1e-8
"""Relative difference of imbalances that counts as none; above the rounding of bounds."""


@dataclass(frozen=True, slots=True)
class Point:
    """A placement on the frontier, and what is possible at its budget."""

    budget: Budget = field(compare=False)  # the budget that it was searched for
    # the channel of each key, int32, shape (keys,); empty after reading
    placed: Channels = field(compare=False, repr=False)
    pins: int  # number of keys away from home
    state_moved: float  # state of those keys / all state
    imbalance: float  # of the loads that it was built from
    bound: float  # lower bound of the imbalance of any placement within the budget
    proved: bool  # whether the placement is proven optimal
    # median imbalance in later windows of such a plan from the windows before; None without windows
    out_of_sample: float | None = None

    @property
    def gap(self) -> float:
        """Imbalance / its lower bound: 1 for an optimum."""
        return self.imbalance / self.bound

    @property
    def judged(self) -> float:
        """The imbalance: out of sample if known, else in sample."""
        return self.imbalance if self.out_of_sample is None else self.out_of_sample

    def keeps(self, budget: Budget) -> bool:
        """Whether the placement is within another budget."""
        share = budget.max_moved_state
        return self.pins <= budget.pins and (share is None or self.state_moved <= share * (1 + _TIE))

    @property
    def figures(self) -> tuple[float, ...]:
        """Pins, state moved, imbalance in sample and as judged."""
        return self.pins, self.state_moved, self.imbalance, self.judged

    def beats(self, other: "Point") -> bool:
        """Whether it is as good in everything, and better in something."""
        own, its = self.figures, other.figures
        return own != its and all(one <= two for one, two in zip(own, its, strict=True))


@dataclass(frozen=True, slots=True)
class Frontier:
    """Pareto-optimal placements, from doing nothing to the full rebuild."""

    points: tuple[Point, ...]  # by rising state moved; the first one pins nothing
    # where more state moved begins to buy less: the point of greatest distance to the chord. With x the state moved
    # and y the logarithm of the imbalance, out of sample if known, each scaled to [0, 1] between doing nothing and
    # the least of all, it is the point of least x + y; the lower imbalance of equal ones. If no point lowers the
    # imbalance, nothing is pinned. Without state, x counts pins
    knee: Point
    recommended: Point | None = None  # the point of the plan that is recommended, if any; others may beat it
    # shares of state, rising, each with the lower bound of the imbalance of any placement that moves no more
    bounds: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of_points(
        cls, points: Sequence[Point], recommended: Point | None = None, today: Today | None = None
    ) -> "Frontier":
        """The points that no other beats, and their knee.

        Args:
            recommended: Kept among the points, even if another beats it.
            today: For the bounds.
        """
        distinct = {point.figures: point for point in [*reversed(points), *([recommended] if recommended else [])]}
        every = list(distinct.values())
        kept = [point for point in every if point is recommended or not any(other.beats(point) for other in every)]
        kept.sort(key=lambda point: (point.state_moved, point.pins))
        bounds = () if today is None else tuple(_bounds(kept, today))
        return cls(tuple(kept), _knee(kept), recommended, bounds)

    def within(self, budget: Budget) -> Point:
        """The point of least imbalance that keeps to a budget."""
        return min((point for point in self.points if point.keeps(budget)), key=lambda point: point.judged)

    @property
    def is_tested(self) -> bool:
        """Whether the points were judged out of sample."""
        return self.knee.out_of_sample is not None

    def table(self) -> Table:
        """One row per point, by rising state moved."""
        columns = [column for column in _SHOWN if self.is_tested or column is not _OUT_OF_SAMPLE]
        rows = [
            [*(self._cells(point)[column.name] for column in columns), ", ".join(self.names(point))]
            for point in self.points
        ]
        return Table.from_rows(self.title, [*columns, Column("plan")], rows, _NOTE)

    def names(self, point: Point) -> list[str]:
        """What a point is called: doing nothing, the knee, the recommended plan."""
        named = {"today": self.points[0], "knee": self.knee, "recommended": self.recommended}
        return [name for name, each in named.items() if each is point]

    @property
    def title(self) -> str:
        """Title of its table and chart."""
        return "Imbalance against state moved" + ("" if self.is_tested else " (in-sample)")

    def as_data(self) -> dict[str, object]:
        """The frontier for JSON, with the meaning and unit of each field."""
        fields = {column.name: f"{column.about} ({column.unit})" for column in _COLUMNS}
        bounds = [{"state_moved": share, "bound": bound} for share, bound in self.bounds]
        points = [self._cells(point) for point in self.points]
        return {"schema": SCHEMA, "fields": fields, "points": points, "bounds": bounds}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Frontier":
        """The frontier that `as_data` wrote, without placements."""
        names = ("pins", "state_moved", "imbalance", "bound", "proved", "out_of_sample")
        nowhere = np.zeros(0, np.int32)
        points = [Point(NO_LIMITS, nowhere, *(row[name] for name in names)) for row in data["points"]]
        (knee,) = (point for point, row in zip(points, data["points"], strict=True) if row["knee"])
        recommended = [point for point, row in zip(points, data["points"], strict=True) if row["recommended"]]
        bounds = tuple((float(row["state_moved"]), float(row["bound"])) for row in data["bounds"])
        return cls(tuple(points), knee, recommended[0] if recommended else None, bounds)

    def _cells(self, point: Point) -> dict[str, Cell]:
        return {
            "pins": point.pins,
            "state_moved": point.state_moved,
            "imbalance": point.imbalance,
            "out_of_sample": point.out_of_sample,
            "bound": point.bound,
            "times_best_possible": point.gap,
            "proved": point.proved,
            "knee": point is self.knee,
            "recommended": point is self.recommended,
        }


_OUT_OF_SAMPLE = Column(
    "out_of_sample", Kind.RATIO, "ratio", "median imbalance of later windows, of such a plan from those before"
)

_COLUMNS = (
    Column("pins", Kind.COUNT, "keys", "keys pinned away from their worker of today"),
    Column("state_moved", Kind.SHARE, "share", "state of the pinned keys / all state"),
    Column("imbalance", Kind.RATIO, "ratio", "load of the busiest worker / mean load"),
    _OUT_OF_SAMPLE,
    Column("bound", Kind.RATIO, "ratio", "lower bound of the imbalance at this budget"),
    Column("times_best_possible", Kind.RATIO, "ratio", "imbalance / bound"),
    Column("proved", Kind.TEXT, "yes or no", "whether the placement is proven optimal"),
    Column("knee", Kind.TEXT, "yes or no", "where more state moved begins to buy less"),
    Column("recommended", Kind.TEXT, "yes or no", "whether the verdict recommends this plan"),
)

_SHOWN = tuple(column for column in _COLUMNS if column.kind is not Kind.TEXT)

_NOTE = "With --max-pins or --max-migration, the best row within the limit is recommended."


def frontier(today: Today, limits: Budget = NO_LIMITS, work: int = WORK) -> Frontier:
    """The frontier of about a dozen budgets.

    They rise from doing nothing to the full rebuild. Some budgets limit pins, from 1 to those of the full rebuild;
    others limit the state moved. With at most `MOST_PAIRS` pairs of a key and a channel, each placement is improved and
    bounded by an integer program.

    Args:
        limits: Limits that every point keeps to.
        work: Comparisons of each search (`rebalance`).
    """
    return Frontier.of_points(points_of(today, limits, work), today=today)


def points_of(today: Today, limits: Budget, work: int = WORK) -> list[Point]:
    """A point for each budget; some may beat others."""
    return [_point(today, budget, work) for budget in budgets(today, limits, work)]


def budgets(today: Today, limits: Budget, work: int = WORK) -> list[Budget]:
    """Budgets from nothing to all that the limits allow, distinct."""
    rebuilt = rebalance(today, limits, work=work)
    pins, state = today.pins(rebuilt), today.moved_share(rebuilt)
    by_pins = {round(pins ** (at / _BY_PINS)) for at in range(_BY_PINS)} if pins else set()
    some = [Budget(None, number) for number in sorted(by_pins)]
    some += [Budget(state / 2**at) for at in range(_BY_STATE, 0, -1)] if state else []
    return [Budget(None, 0).within(limits), *(each.within(limits) for each in some), limits]


def _point(today: Today, budget: Budget, work: int) -> Point:
    bound = bound_of_today(today, budget)
    placed = rebalance(today, budget, bound, work)
    reached = today.imbalance(placed)
    if len(today.loads) * len(today.residual) <= MOST_PAIRS and reached > bound * (1 + _TIE):
        searched, better, _ = exact_bound(today, budget, placed)
        if budget != NO_LIMITS or today.residual.any():  # else it is the floor that every other table shows
            bound = max(bound, searched)
        if today.imbalance(better) < reached * (1 - _TIE) and today.moved(better) <= today.state_in(budget):
            placed, reached = better, today.imbalance(better)
    is_proved = reached <= bound * (1 + _TIE)
    pins, moved = today.pins(placed), today.moved_share(placed)
    return Point(budget, placed, pins, moved, reached, min(bound, reached), is_proved)


def _bounds(points: Sequence[Point], today: Today) -> list[tuple[float, float]]:
    """The lower bound at each share of state that a point moves."""
    found, reached = [], np.inf
    for point in points:
        # More state moved never has a higher bound, but for rounding.
        reached = min(reached, point.imbalance, bound_of_today(today, Budget(min(point.state_moved, 1.0))))
        found.append((point.state_moved, reached))
    return found


def _knee(points: Sequence[Point]) -> Point:
    least = min(point.judged for point in points)
    fall = math.log(points[0].judged / least)
    if fall <= _TIE:
        return points[0]
    is_moved = points[-1].state_moved > 0
    costs = [point.state_moved if is_moved else float(point.pins) for point in points]
    sums = [
        math.log(point.judged / least) / fall + cost / max(costs) for point, cost in zip(points, costs, strict=True)
    ]
    nearest = [point for point, each in zip(points, sums, strict=True) if each <= min(sums) + _TIE]
    return min(nearest, key=lambda point: point.judged)
