"""Points of a sweep: workers and load."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from adapt.core.errors import UsageError
from adapt.core.mechanisms.cost_model import Terms, Wanted
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.input.speed import Speed

SEEDS, FEWEST = 10, 3
"""Seeds at a single point, and at each of several or of a long stream."""

MOST_ROWS = 5_000_000
"""Rows over all scenarios from which on a stream is long."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a sweep."""

    workers: int  # N, the workers of scenarios that do not scale
    offered: float  # load of the busiest of the first N channels of static-uniform, over its capacity

    def as_data(self) -> dict[str, Any]:
        """The point as JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a comparison varies: loads, workers and seeds."""

    speeds: tuple[Speed, ...] = ()  # loads, or speed-ups; empty for the given one
    workers: tuple[int, ...] = ()  # the loads are of the first; empty for the given number
    seeds: int | None = None  # at every point; None, `SEEDS` or `FEWEST`

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise UsageError(f"--seeds must be at least 1 (got {self.seeds})")
        speed = "--speedup" if self.speeds and self.speeds[0].speedup else "--offered"
        options: Sequence[tuple[str, Sequence[object]]] = ((speed, self.speeds), ("--channels", self.workers))
        for option, values in options:
            if len(set(values)) < len(values):
                raise UsageError(f"{option} names a value twice; give each once")

    def points(self, base: Point, load: float) -> list[Point]:
        """The points, the given one first.

        Args:
            load: Load of static-uniform's busiest channel at the trace's own rate.
        """
        loads = [each.load(load) for each in self.speeds]
        grid = product(self.workers or (base.workers,), loads or [base.offered])
        return list(dict.fromkeys([base, *(Point(*each) for each in grid)]))

    def seeds_of(self, rows: int) -> int:
        """Seeds at a point, given rows over all scenarios."""
        if self.seeds is not None:
            return self.seeds
        return FEWEST if len(self.speeds) > 1 or len(self.workers) > 1 or rows > MOST_ROWS else SEEDS

    @property
    def most_runs(self) -> int:
        """The most runs of a scenario."""
        return max(len(self.speeds), 1) * max(len(self.workers), 1) * self.seeds_of(0)

    def as_data(self) -> dict[str, Any]:
        """The sweep as JSON data."""
        return {"speeds": [str(each) for each in self.speeds], "workers": list(self.workers), "seeds": self.seeds}


def terms_at(point: Point, wanted: Wanted, demand: Demand) -> Terms:
    """The settings of all scenarios at a point.

    Loads are those of the first number of workers, so that more workers get the same rows in the same time.

    Args:
        wanted: Given settings, with the first number of workers.
        demand: Offered load of the stream at its own speed, on the stage of static-uniform.
    """
    terms = replace(wanted, speed=Speed(offered=point.offered)).terms(demand)
    return terms if point.workers == wanted.channels else terms.with_channels(point.workers)


def with_seed(terms: Terms, seed: int) -> Terms:
    """The same settings with another random seed, of service times too."""
    costs = None if terms.row_costs is None else replace(terms.row_costs, seed=seed)
    return replace(terms, seed=seed, row_costs=costs)
