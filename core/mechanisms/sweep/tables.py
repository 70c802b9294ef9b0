"""Tables of a sweep: points, and scenarios over seeds."""

import math
from collections.abc import Sequence

from adapt.core.mechanisms.recommendation import is_dominated, point_of, real
from adapt.core.mechanisms.sweep.finding import Finding
from adapt.core.mechanisms.sweep.race import Record, mean_outcome
from adapt.core.statistics.intervals import mean_bounds
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import duration, number

_TIMES = (
    Column("latency_p99", Kind.SECONDS, "s", "geometric mean over seeds"),
    Column("latency_p99_low", Kind.SECONDS, "s", "lower bound of that, by Student's t over seeds at 95 % confidence"),
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


def points_shown(points: Table) -> Table:
    """What is recommended at each point, for people."""
    records = sorted(points.records(), key=lambda row: (row["workers"], row["offered"]))
    columns = (
        Column("workers", Kind.COUNT),
        Column("load", Kind.NUMBER),
        Column("scenario"),
        Column("keeps_up"),
        Column("wins"),
        Column("latency_p99"),
        Column("worker_time", Kind.SECONDS),
    )
    rows = [
        (
            *(row[name] for name in ("workers", "offered", "scenario", "keeps_up")),
            f"{row['wins']} of {row['seeds']}",
            _bounded_p99(row),
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
        *(Column("latency_p99"), Column("worker_time", Kind.SECONDS)),
    )
    rows = [
        (
            *(row[name] for name in ("scenario", "seeds", "wins")),
            *(_bounded_p99(row), row["worker_time"]),
        )
        for row in here
        if int(row["seeds"] or 0) > 1
    ]
    note = f"With {place[0]} workers at load {number(float(place[1] or 0))}. Fewer seeds: dropped as clearly worse."
    return Table.from_rows(over_seeds.title, columns, rows, note)


def _bounded_p99(row: Record) -> str:
    """The p99 with its interval."""
    texts = [
        duration(float(cell)) if cell is not None else ""
        for cell in (row["latency_p99"], row["latency_p99_low"], row["latency_p99_high"])
    ]
    return texts[0] if not texts[1] or texts[1] == texts[2] else f"{texts[0]} ({texts[1]} to {texts[2]})"
