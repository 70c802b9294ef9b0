"""Points of a sweep: workers and load."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from adapt.core.errors import UsageError
from adapt.core.mechanisms.cost_model import Terms, Wanted
from adapt.core.mechanisms.race import METRICS, Race, Record, mean_outcome
from adapt.core.mechanisms.recommendation import (
    Advice,
    Frame,
    advice_of,
    is_dominated,
    keeps_up,
    point_of,
    real,
)
from adapt.core.mechanisms.scenarios import BASELINE, Scenario
from adapt.core.phrases import counted, listed, percent
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.input.speed import Speed
from adapt.core.stage.outcome import CALM, CHEAP
from adapt.core.statistics.intervals import LEVEL, mean_bounds
from adapt.core.table import Cell, Column, Kind, Table

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


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the race at one point."""

    point: Point
    frame: Frame  # stream and stage there
    race: Race  # the finished race
    advice: Advice  # the recommendation by the mean outcomes

    @classmethod
    def from_race(cls, point: Point, frame: Frame, race: Race, scenarios: Mapping[str, Scenario]) -> "Finding":
        """What the rule recommends by the mean outcomes.

        Scenarios that drop rows were dropped from the race; the advice names them with the seeds that they had.
        """
        records = race.means()
        names = set(race.compared)
        for name in race.entrants:
            if name not in names and name in race.runs and (race.is_settled or _is_lossy(race.runs[name])):
                records.append(mean_outcome(race.runs[name]))
        advice = advice_of(records, scenarios, frame)
        if (advice.scenario or BASELINE) not in names:
            advice = advice_of(race.means(), scenarios, frame)
        return cls(point, frame, race, advice)

    @property
    def scenario(self) -> str:
        """The recommended scenario; the baseline if none helps."""
        return self.advice.scenario or BASELINE

    @property
    def keeps_up(self) -> bool:
        """Whether it keeps up in the mean."""
        return keeps_up(mean_outcome(self.race.runs[self.scenario]), self.frame)

    @property
    def seeds(self) -> int:
        """Number of seeds that it is judged by."""
        return self.race.judged

    @property
    def wins(self) -> int:
        """Seeds with which the rule recommends it."""
        return sum(name == self.scenario for name in self.race.picks())

    @property
    def level(self) -> int:
        """Other seeds with which its difference from the best does not matter."""
        return sum(self.is_level_at(seed, self.scenario) for seed in range(self.seeds)) - self.wins

    @property
    def is_clear(self) -> bool:
        """Whether it is best, or level with the best, with most seeds."""
        return 2 * (self.wins + self.level) > self.seeds

    def means(self) -> list[Record]:
        """Mean outcomes of all scenarios that ran."""
        return [mean_outcome(each[: self.seeds]) for each in self.race.runs.values()]

    def is_level_at(self, seed: int, name: str) -> bool:
        """Whether a scenario is level with the best with a seed."""
        runs, at = self.race.runs, min(seed, self.seeds - 1)
        return name in self.race.compared and self._is_level(runs[name][at], runs[self.race.pick(at)][at])

    def _is_level(self, one: Record, picked: Record) -> bool:
        same = keeps_up(one, self.frame) == keeps_up(picked, self.frame)
        slow, dear = (real(one[metric]) / max(real(picked[metric]), 1e-12) for metric in METRICS)
        return same and slow <= CALM and dear <= CHEAP


def _is_lossy(outcomes: Sequence[Record]) -> bool:
    return any(real(each["drop_rate"]) > 0 for each in outcomes)


def over_seeds(found: Finding) -> str:
    """What to do, and how often that wins over seeds."""
    seeds, wins, level = found.seeds, found.wins, found.level
    name, action = found.scenario, found.advice.sentence
    if seeds == 1:
        return f"{action} That is one seed: how often it wins is unknown; use --seeds."
    if found.race.is_certain and found.wins == seeds:
        return f"{action} No seed changes anything: {seeds} give {name} the same latency and cost."
    if found.race.is_settled:
        return f"{action} {name} keeps up with {_all_of(seeds)}."
    said = f"{name} wins in {wins} of {counted(seeds, 'seed')}"
    others = seeds - wins - level
    if level:
        said += f" and is level with the best in {'the other' if not others and level == 1 else f'{level} more'}"
    if not found.is_clear:
        return f"No scenario is best beyond the noise of seeds: {said}{_instead(found)}."
    return f"{action} {said}{_instead(found)}."


def _instead(found: Finding) -> str:
    """What wins in the other seeds."""
    picks = found.race.picks()
    counts = Counter(name for seed, name in enumerate(picks) if not found.is_level_at(seed, found.scenario))
    return f"; else {listed([f'{name} in {times}' for name, times in counts.most_common()])}" if counts else ""


def _all_of(seeds: int) -> str:
    return f"all {counted(seeds, 'seed')}" if seeds > 1 else "one seed"


_TIMES = (
    Column("latency_p99", Kind.SECONDS, "s", "geometric mean over seeds"),
    Column(
        "latency_p99_low",
        Kind.SECONDS,
        "s",
        f"lower bound of that, by Student's t over seeds at {percent(LEVEL)} confidence",
    ),
    Column("latency_p99_high", Kind.SECONDS, "s", "upper bound"),
    Column("worker_time", Kind.SECONDS, "s", "geometric mean over seeds"),
)

POINT_COLUMNS = (
    Column("workers", Kind.COUNT, "", "workers of scenarios that do not scale"),
    Column("offered", Kind.NUMBER, "", "load of static-uniform's busiest channel over its capacity, with the first N"),
    Column("scenario", about="recommended there"),
    Column("keeps_up", about="whether it keeps up in the mean"),
    Column("seeds", Kind.COUNT, "", "seeds of the scenarios that were not dropped"),
    Column("wins", Kind.COUNT, "seeds", "with which it is recommended"),
    Column("level", Kind.COUNT, "seeds", "others with which the difference does not matter"),
    *_TIMES,
)

OVER_SEEDS_COLUMNS = (
    *POINT_COLUMNS[:2],
    Column("scenario"),
    Column("seeds", Kind.COUNT),
    Column("dropped_after", Kind.COUNT, "seeds", "after which it was dropped as clearly worse; missing if never"),
    Column("wins", Kind.COUNT, "seeds", "with which it is recommended"),
    *_TIMES,
    Column("drop_rate", Kind.SHARE, "", "mean over seeds"),
    Column("pareto", about="whether nothing with the same load, and any workers, dominates it"),
)


def points_table(findings: Sequence[Finding]) -> Table:
    """What is recommended at each point, the given one first."""
    return Table.from_rows("By load and workers", POINT_COLUMNS, [_point_row(each) for each in findings])


def _point_row(found: Finding) -> list[Cell]:
    point, race, name = found.point, found.race, found.scenario
    seeds, wins, level = found.seeds, found.wins, found.level
    return [
        *(point.workers, point.offered, name, "yes" if found.keeps_up else "no"),
        *(seeds, wins, level),
        *_times(race.runs[name][:seeds]),
    ]


def over_seeds_table(findings: Sequence[Finding]) -> Table:
    """Every scenario that ran at each point, with intervals over seeds."""
    runs = [found.race.runs for found in findings]
    means = {(at, name): mean_outcome(each) for at, ran in enumerate(runs) for name, each in ran.items()}
    rows = []
    for at, found in enumerate(findings):
        point, race, picks = found.point, found.race, found.race.picks()
        for name, outcomes in runs[at].items():
            near = [
                point_of(means[other, member])
                for (other, member) in means
                if findings[other].point.offered == point.offered
            ]
            beaten = is_dominated(point_of(means[at, name]), near)
            rows.append(
                [
                    *(point.workers, point.offered, name, len(outcomes), race.dropped.get(name)),
                    picks.count(name),
                    *_times(outcomes),
                    *(means[at, name]["drop_rate"], "no" if beaten else "yes"),
                ]
            )
    return Table.from_rows("Over seeds", OVER_SEEDS_COLUMNS, rows)


def _times(outcomes: Sequence[Record]) -> list[Cell]:
    """Cells of `_TIMES`; p99 is missing where no row was processed."""
    means = mean_outcome(outcomes)
    bounds = (
        mean_bounds([math.log(real(each["latency_p99"])) for each in outcomes])
        if means["latency_p99"]
        else (math.inf, math.inf)
    )
    ends = (math.exp(each) if math.isfinite(each) else None for each in bounds)
    return [means["latency_p99"], *ends, means["worker_time"]]
