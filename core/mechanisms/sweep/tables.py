"""Tables of a sweep: points, and scenarios over seeds."""

import math
from collections.abc import Sequence

from adapt.core.mechanisms.recommendation import is_dominated, point_of
from adapt.core.mechanisms.scenarios import BASELINE
from adapt.core.mechanisms.sweep.finding import Finding
from adapt.core.mechanisms.sweep.race import METRICS, Record, mean_outcome
from adapt.core.statistics.intervals import mean_bounds
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import duration, number

POINT_COLUMNS = (
    Column("workers", Kind.COUNT, "", "workers of scenarios that do not scale"),
    Column("offered", Kind.NUMBER, "", "load of static-uniform's busiest channel over its capacity, with the first N"),
    Column("scenario", about="recommended there"),
    Column("keeps_up", about="whether it keeps up in the mean"),
    Column("seeds", Kind.COUNT, "", "seeds of the scenarios that were not dropped"),
    Column("wins", Kind.COUNT, "seeds", "with which it is recommended"),
    Column("level", Kind.COUNT, "seeds", "others with which the difference does not matter"),
    Column("wins_low", Kind.SHARE, "", "lower bound of the share of seeds with which it wins or is level"),
    Column("p99", Kind.SECONDS, "s", "geometric mean over seeds"),
    Column("p99_low", Kind.SECONDS, "s", "lower bound of that, by Student's t over seeds at 95 % confidence"),
    Column("p99_high", Kind.SECONDS, "s", "upper bound"),
    Column("worker_time", Kind.SECONDS, "s", "geometric mean over seeds"),
    Column("worker_time_low", Kind.SECONDS, "s", "lower bound"),
    Column("worker_time_high", Kind.SECONDS, "s", "upper bound"),
    Column("uniform_p99", Kind.SECONDS, "s", "p99 of static-uniform"),
    Column("uniform_worker_time", Kind.SECONDS, "s", "worker time of static-uniform"),
    Column("runs", Kind.COUNT, "", "scenarios run there, each with each seed"),
)

_TIMES = ("p50", "p95", "p99", "worker_time")

OVER_SEEDS_COLUMNS = (
    *POINT_COLUMNS[:2],
    Column("scenario"),
    Column("seeds", Kind.COUNT),
    Column("dropped_after", Kind.COUNT, "seeds", "after which it was dropped as clearly worse; missing if never"),
    Column("wins", Kind.COUNT, "seeds", "with which it is recommended"),
    *(
        Column(f"{name}{end}", Kind.SECONDS, "s", about)
        for name in _TIMES
        for end, about in (
            ("", "geometric mean over seeds"),
            ("_low", "lower bound, by Student's t over seeds at 95 % confidence"),
            ("_high", "upper bound"),
        )
    ),
    *(
        Column(f"{name}_ratio{end}", Kind.RATIO, "", about)
        for name in METRICS
        for end, about in (
            ("", "that of the recommended scenario over its own, with equal seeds"),
            ("_low", "lower bound"),
            ("_high", "upper bound"),
        )
    ),
    Column("drop_rate", Kind.SHARE, "", "mean over seeds"),
    Column("pareto", about="whether nothing with the same load, and any workers, dominates it"),
)


def points_table(findings: Sequence[Finding]) -> Table:
    """What is recommended at each point, the given one first."""
    return Table.from_rows("By load and workers", POINT_COLUMNS, [_point_row(each) for each in findings])


def _point_row(found: Finding) -> list[Cell]:
    point, race, name = found.point, found.race, found.scenario
    seeds, wins, level = found.seeds, found.wins, found.level
    uniform = mean_outcome(race.runs[BASELINE])
    return [
        *(point.workers, point.offered, name, "yes" if found.keeps_up else "no"),
        *(seeds, wins, level, found.least),
        *_with_bounds(race.runs[name][:seeds], "p99"),
        *_with_bounds(race.runs[name][:seeds], "worker_time"),
        *(uniform["p99"], uniform["worker_time"]),
        sum(map(len, race.runs.values())),
    ]


def over_seeds_table(findings: Sequence[Finding]) -> Table:
    """Every scenario that ran at each point, with intervals over seeds."""
    runs = [found.race.runs for found in findings]
    means = {(at, name): mean_outcome(each) for at, ran in enumerate(runs) for name, each in ran.items()}
    rows = []
    for at, found in enumerate(findings):
        point, race, picks = found.point, found.race, found.race.picks()
        for name, outcomes in runs[at].items():
            margins = [found.margin(name, metric) for metric in METRICS]
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
                    *(cell for metric in _TIMES for cell in _with_bounds(outcomes, metric)),
                    *(cell for margin in margins for cell in (margin.ratio, margin.low, margin.high)),
                    *(means[at, name]["drop_rate"], "no" if beaten else "yes"),
                ]
            )
    return Table.from_rows("Over seeds", OVER_SEEDS_COLUMNS, rows)


def _with_bounds(outcomes: Sequence[Record], metric: str) -> tuple[float | None, float | None, float | None]:
    """The geometric mean of a metric with its interval; missing where no row was processed."""
    cells = [each[metric] for each in outcomes]
    values = [math.log(cell) for cell in cells if isinstance(cell, int | float) and cell > 0]
    if len(values) < len(cells):
        return None, None, None
    low, high = mean_bounds(values)
    mean = math.exp(math.fsum(values) / len(values))
    return mean, *(math.exp(each) if math.isfinite(each) else None for each in (low, high))  # type: ignore[return-value]


def points_shown(points: Table) -> Table:
    """What is recommended at each point, for people."""
    records = sorted(points.records(), key=lambda row: (row["workers"], row["offered"]))
    columns = (
        Column("workers", Kind.COUNT),
        Column("load", Kind.NUMBER),
        Column("scenario"),
        Column("keeps_up"),
        Column("wins"),
        Column("p99"),
        Column("worker_time", Kind.SECONDS),
    )
    rows = [
        (
            *(row[name] for name in ("workers", "offered", "scenario", "keeps_up")),
            f"{row['wins']} of {row['seeds']}",
            _bounded(row, "p99"),
            row["worker_time"],
        )
        for row in records
    ]
    note = "What is recommended at each load, p99 with its interval over seeds at 95 % confidence (Student's t)."
    return Table.from_rows(points.title, columns, rows, note)


def over_seeds_shown(over_seeds: Table) -> Table:
    """Scenarios at the given point with several seeds, for people."""
    records = over_seeds.records()
    place = [records[0][name] for name in ("workers", "offered")]
    here = [row for row in records if [row[name] for name in ("workers", "offered")] == place]
    columns = (
        *(Column("scenario"), Column("seeds", Kind.COUNT), Column("wins", Kind.COUNT)),
        *(Column("p99"), Column("worker_time"), Column("p99_ratio")),
    )
    rows = [
        (
            *(row[name] for name in ("scenario", "seeds", "wins")),
            *(_bounded(row, name) for name in ("p99", "worker_time")),
            _bounded(row, "p99_ratio"),
        )
        for row in here
        if int(row["seeds"] or 0) > 1
    ]
    note = (
        f"With {place[0]} workers at load {number(float(place[1] or 0))}; p99_ratio is the recommended scenario's p99"
        " over this one's, with equal seeds. Fewer seeds: dropped as clearly worse."
    )
    return Table.from_rows(over_seeds.title, columns, rows, note)


_WRITERS = {"ratio": "{:.2f}".format}


def has_several(points: Table) -> bool:
    """Whether several numbers of workers were tried."""
    records = points.records()
    first = records[0]
    near = [row for row in records if row["offered"] == first["offered"]]
    return len({row["workers"] for row in near}) > 1


def front_shown(over_seeds: Table) -> Table:
    """Pareto front at the given load over scenarios and numbers of workers."""
    records = over_seeds.records()
    place = records[0]["offered"]
    front = [row for row in records if row["offered"] == place and row["pareto"] == "yes"]
    columns = (
        *(Column("workers", Kind.COUNT), Column("scenario"), Column("worker_time", Kind.SECONDS)),
        *(Column("p99", Kind.SECONDS), Column("drop_rate", Kind.SHARE)),
    )
    rows = [tuple(row[column.name] for column in columns) for row in sorted(front, key=point_of)]
    note = (
        f"At load {number(float(place or 0))}: nothing else, with any number of workers tried, is at least as good"
        " in worker time, p99 and drop rate. workers is N of scenarios that do not scale."
    )
    return Table.from_rows("Pareto front with any number of workers", columns, rows, note)


def _bounded(row: Record, name: str) -> str:
    """A cell with its interval."""
    write = _WRITERS.get(name.rpartition("_")[2], duration)
    cells: list[Cell] = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
    texts = [write(float(cell)) if isinstance(cell, int | float) else "" for cell in cells]
    return texts[0] if not texts[1] or texts[1] == texts[2] else f"{texts[0]} ({texts[1]} to {texts[2]})"
