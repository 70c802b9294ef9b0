"""Points of a sweep: workers, load and hash."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, product
from typing import Any

from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.mechanisms.cost_model import Terms, Wanted
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.input.speed import Speed

LOADS = (0.5, 0.8, 1.0, 1.5)
"""Loads around the given one."""

MORE_WORKERS = 2
"""Workers that a placement is compared with."""

SEEDS = 10
"""Seeds at the given load."""

FEWEST = 3
"""Seeds at other points."""

AT_CHANGES = 6
"""Seeds at the loads next to a change of the answer, enough for an interval at 95 % confidence."""

FEW = 4
"""Scenarios that get more than one seed at other points."""

MOST_ROWS = 5_000_000
"""Rows that a sweep around the given point may simulate before it starts no further points."""

APART = 0.15
"""Around the given point, loads between which the recommendation changes are at most this far apart."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a sweep.

    Attributes:
        workers: N, the workers of scenarios that do not scale.
        offered: Load of the busiest of the first N channels of static-uniform, over its capacity.
        hash: Hash function of the keys.
    """

    workers: int
    offered: float
    hash: HashName

    def as_data(self) -> dict[str, Any]:
        """The point as JSON data."""
        return asdict(self) | {"hash": self.hash.value}


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a comparison varies.

    Without speeds, workers and hashes, points lie around the given one: each load in `LOADS`, two more workers from the
    given load on, and the other hash. There, few scenarios get more than the first seed, and long traces fewer points.

    Attributes:
        speeds: Loads, or growth of the rate.
        workers: Numbers of workers, the first of which the loads are of.
        hashes: Hash functions, the first of which the loads are of.
        seeds: Seeds at every point; None, `SEEDS` at the given point and `FEWEST` at others.

    Raises:
        UsageError: A number is out of range or there twice.
    """

    speeds: tuple[Speed, ...] | None = None
    workers: tuple[int, ...] | None = None
    hashes: tuple[HashName, ...] | None = None
    seeds: int | None = None

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise UsageError(f"--seeds must be at least 1 (got {self.seeds})")
        speed = "--growth" if self.speeds and self.speeds[0].growth else "--offered"
        for option, values in ((speed, self.speeds), ("--channels", self.workers), ("--hashes", self.hashes)):
            if values is not None and len(set(values)) < len(values):
                raise UsageError(f"{option} names a value twice; give each once")

    @property
    def is_around(self) -> bool:
        """Whether points lie around the given one, and are chosen for speed."""
        return self.speeds is None and self.workers is None and self.hashes is None

    def points(self, base: Point, load: float) -> list[Point]:
        """The points, the given one first and others by importance.

        Args:
            load: Load of static-uniform's busiest channel at the trace's own rate.
        """
        if self.is_around:
            return [base, *_around(base)]
        loads = [each.load(load) for each in self.speeds or ()]
        grid = product(self.hashes or (base.hash,), self.workers or (base.workers,), loads or [base.offered])
        return list(dict.fromkeys([base, *(Point(workers, load, name) for name, workers, load in grid)]))

    @property
    def most_runs(self) -> int:
        """The most runs of a scenario.

        Around the given point, those at that point, as rows bound the others.
        """
        points = (
            1 if self.is_around else len(self.speeds or (1,)) * len(self.workers or (1,)) * len(self.hashes or (1,))
        )
        return points * (self.seeds or (SEEDS if self.is_around else FEWEST))

    def seeds_at(self, point: Point, base: Point) -> int:
        """Number of seeds at a point."""
        if self.seeds is not None:
            return self.seeds
        return SEEDS if point == base else FEWEST

    def as_data(self) -> dict[str, Any]:
        """The sweep as JSON data."""
        speeds = None if self.speeds is None else [str(each) for each in self.speeds]
        return {
            "speeds": speeds,
            "workers": None if self.workers is None else list(self.workers),
            "hashes": None if self.hashes is None else [each.value for each in self.hashes],
            "seeds": self.seeds,
        }


def _around(base: Point) -> list[Point]:
    """Points that differ from the given one in one respect, or have a higher load and more workers."""
    loads = [load for load in LOADS if abs(load - base.offered) > 0.05]
    more = base.workers + MORE_WORKERS
    return [
        *(replace(base, offered=load) for load in loads),
        *(replace(base, workers=more, offered=load) for load in (base.offered, *loads) if load >= base.offered),
        *(replace(base, hash=name) for name in HashName if name is not base.hash),
    ]


def terms_at(point: Point, wanted: Wanted, demand: Demand) -> Terms:
    """The settings of all scenarios at a point.

    Loads are those of the first number of workers, so that more workers get the same rows in the same time.

    Args:
        wanted: Given settings, with the first number of workers and the first hash.
        demand: Offered load of the stream at its own speed, on the stage of static-uniform.
    """
    terms = replace(wanted, speed=Speed(offered=point.offered)).terms(demand)
    if point.workers != wanted.channels:
        terms = terms.with_channels(point.workers)
    return replace(terms, hash=point.hash)


def with_seed(terms: Terms, seed: int) -> Terms:
    """The same settings with another random seed, of service times too."""
    costs = None if terms.row_costs is None else replace(terms.row_costs, seed=seed)
    return replace(terms, seed=seed, row_costs=costs)


def between(loads: Sequence[float], apart: float) -> list[float]:
    """The middles of adjacent loads that are further apart."""
    ordered = sorted(loads)
    return [round((a + b) / 2, 3) for a, b in pairwise(ordered) if b - a > apart + 1e-9]
