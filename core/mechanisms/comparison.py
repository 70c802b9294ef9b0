"""Scenarios beside each other: who is best in what, who is not beaten, and what there is to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from adapt.core.mechanisms.recommendation import Frame, advice_of, point_of, real
from adapt.core.mechanisms.scenario import OUTCOME_COLUMNS
from adapt.core.mechanisms.scenarios import Scenario
from adapt.core.run import run_as_data
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import duration, human, number

LOWER = ("p50", "p95", "p99", "shed", "worker_time", "idle_workers", "imbalance_max", "moved", "paused", "restarts")
"""Columns in which less is better; of throughput, more is."""

MARKED = ("throughput", *LOWER)
"""Columns of which the best is marked."""

_SAME = 1.005
"""Up to this ratio two cells are equally good."""

LOADS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Multiples of the rate of the stream for which the workers that are needed are told."""

SUSTAINED_COLUMNS = (
    Column("scenario"),
    Column("channels", Kind.COUNT, "", "or the pool, where workers come and go"),
    Column("sustainable", Kind.NUMBER, "rows/s", "the largest rate at which lag stays bounded, to 1%"),
    Column("speedup", Kind.NUMBER, "", "at which the stream has that rate"),
    Column("bound", Kind.NUMBER, "rows/s", "of the busiest channel as keys are placed at the start"),
    Column("even_bound", Kind.NUMBER, "rows/s", "of all channels or the pool together"),
    Column("probes", Kind.COUNT, "", "rates that were tried"),
)

DEMAND_COLUMNS = (
    Column("scenario"),
    Column("rate", Kind.NUMBER, "rows/s"),
    Column("load", Kind.NUMBER, "", "over the rate of the stream"),
    Column("workers", Kind.COUNT, "", "the fewest of those tried that sustain it; missing if none does"),
)

SUMMARY_COLUMNS = (
    Column("verdict"),
    Column("advice", about="the scenario to take"),
    Column("rows", Kind.COUNT),
    Column("channels", Kind.COUNT, about="of scenarios whose workers are fixed"),
    Column("pool", Kind.COUNT, "workers", "of those whose workers come and go"),
    Column("speedup", Kind.NUMBER, about="trace seconds in a second of the stage"),
    Column("offered", Kind.NUMBER, about="work of the busiest channel of static-uniform over what it can do"),
    Column("work", Kind.NUMBER, "workers", "that all rows keep busy on average"),
    Column("seconds", Kind.SECONDS, "s", "until the last row is due"),
    Column("rate", Kind.NUMBER, "rows/s", "of the stream at this speed"),
    Column("heaviest_key", Kind.SHARE, about="of the rows, at least"),
)


@dataclass(frozen=True, slots=True)
class ComparisonRun:
    """What a comparison measured.

    Attributes:
        frame: What it is on.
        outcomes: `OUTCOME_COLUMNS`, a row a scenario, that of `BASELINE` first.
        sustained: `SUSTAINED_COLUMNS`; no rows if it was not asked.
        scenarios: Those compared.
        parameters: All that decides the result, beside the stream; JSON data.
    """

    mechanism: ClassVar[str] = "compare"

    frame: Frame
    outcomes: Table
    sustained: Table
    scenarios: tuple[Scenario, ...]
    parameters: Mapping[str, Any]

    def summary(self) -> Table:
        """The comparison in one row, with what to do."""
        frame = self.frame
        found = advice_of(self.outcomes.records(), {one.name: one for one in self.scenarios}, frame)
        rate = frame.rows / frame.last_s if frame.last_s else None
        load = frame.rows, frame.channels, frame.pool, frame.speedup, frame.offered, frame.work, frame.last_s
        row = (found.sentence, found.scenario, *load, rate, frame.heaviest)
        return Table.from_rows("The comparison", SUMMARY_COLUMNS, [row])

    def tables(self) -> dict[str, Table]:
        """`scenarios`, and `sustained` and `demand` if these were asked."""
        tables = {"scenarios": with_best(self.outcomes, self._sustainable())}
        if self.sustained.rows:
            rate = self.frame.rows / self.frame.last_s
            tables |= {"sustained": self.sustained, "demand": demand_table(self.sustained, rate)}
        return tables

    def _sustainable(self) -> dict[str, Cell]:
        """What each sustains with the workers that it has here; nothing where that was not asked."""
        frame, rows = self.frame, self.sustained.records()
        here = {one.name: frame.channels if one.elastic is None else one.pool or frame.pool for one in self.scenarios}
        own = (row for row in rows if row["channels"] == here[str(row["scenario"])])
        return {str(row["scenario"]): row["sustainable"] for row in own}

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def shown(self) -> list[Table]:
        """What people read first, the best of each column marked."""
        return shown_tables(self.tables(), self.summary())

    def _repr_html_(self) -> str:
        """Summary and scenarios, for a notebook."""
        return self.summary()._repr_html_() + marked(self.tables()["scenarios"])._repr_html_()


def shown_tables(tables: Mapping[str, Table], summary: Table) -> list[Table]:
    """A comparison as people read it: quality and cost, then what each did, and what it sustains."""
    scenarios = tables["scenarios"]
    quality = picked(scenarios, ("scenario", "throughput", "p50", "p95", "p99", "shed", "worker_time"), "Scenarios")
    did = picked(scenarios, ("scenario", *MARKED[6:], "workers_max"), "What they did")
    note = f"{_offered(summary)} Throughput is in rows a second; * is the best of its column."
    first = Table(quality.title, quality.columns, quality.rows, note)
    rest = [tables[name] for name in ("sustained", "demand") if name in tables]
    return [first, did, *([_beside(rest[0]), _across(rest[1])] if rest else [])]


def _offered(summary: Table) -> str:
    told = summary.records()[0]
    return (
        f"{told['rows']:,} rows in {duration(float(told['seconds'] or 0))} of the stage, at speed-up"
        f" {number(float(told['speedup'] or 0))}: the busiest of {told['channels']} channels of static-uniform has"
        f" {float(told['offered'] or 0):.2f} times the work that it can do, and all rows together keep"
        f" {float(told['work'] or 0):.1f} workers busy."
    )


def _beside(sustained: Table) -> Table:
    """Of the channels that were asked for, what is sustained and its bounds."""
    note = "The largest rate at which rows wait no longer in the second half of the input than in the first."
    return Table("Sustainable throughput", sustained.columns, sustained.rows, note)


def _across(demand: Table) -> Table:
    """A row a scenario, a column a load."""
    loads = list(dict.fromkeys(float(str(load)) for load in demand.values("load")))
    records = demand.records()
    needed = {(row["scenario"], row["load"]): row["workers"] for row in records}
    names = list(dict.fromkeys(row["scenario"] for row in records))
    columns = (Column("scenario"), *(Column(f"{load:g}x", Kind.COUNT) for load in loads))
    rows = [(name, *(needed[name, load] for load in loads)) for name in names]
    note = (
        "Multiples of the rate of the stream; missing where none of the numbers of workers that were tried sustains it."
    )
    return Table.from_rows("Workers needed against load", columns, rows, note)


def with_best(outcomes: Table, sustainable: Mapping[str, Cell] | None = None) -> Table:
    """The outcomes with what each sustains, whether none beats it, and the columns in which it is best."""
    best, front = best_of(outcomes), pareto(outcomes)
    bounded = "the largest rate at which lag stays bounded; if it was asked for"
    columns = (
        *outcomes.columns,
        Column("sustainable", Kind.NUMBER, "rows/s", bounded),
        Column("pareto", about="whether no other is as good in worker time, p99 and loss, and better in one of them"),
        Column("best", about="columns in which none is better"),
    )
    rows = []
    for at, row in enumerate(outcomes.rows):
        best_in = ", ".join(name for name in MARKED if at in best[name])
        rows.append((*row, (sustainable or {}).get(str(row[0])), "yes" if at in front else "no", best_in))
    return Table.from_rows("Scenarios", columns, rows)


def best_of(outcomes: Table) -> dict[str, set[int]]:
    """The rows in which each column is best; none where most are, or nothing is known."""
    found: dict[str, set[int]] = {}
    for name in MARKED:
        cells = {at: float(cell) for at, cell in enumerate(outcomes.values(name)) if isinstance(cell, int | float)}
        if name != "throughput":
            best = min(cells.values(), default=0.0)
            at_best = {at for at, cell in cells.items() if cell <= best * _SAME + 1e-12}
        else:
            best = max(cells.values(), default=0.0)
            at_best = {at for at, cell in cells.items() if cell * _SAME >= best}
        found[name] = set() if 2 * len(at_best) > len(outcomes.rows) else at_best
    return found


def pareto(outcomes: Table) -> set[int]:
    """The rows that no other row beats: as good in worker time, p99 and share shed, and better in one."""
    points = [point_of(record) for record in outcomes.records()]
    return {
        at
        for at, one in enumerate(points)
        if not any(all(a <= b for a, b in zip(other, one, strict=True)) and other != one for other in points)
    }


def picked(table: Table, names: Sequence[str], title: str) -> Table:
    """Some columns of the scenarios, the best cells marked by a star."""
    best = best_of(table)
    columns = {column.name: column for column in table.columns}
    rows = []
    for at, record in enumerate(table.records()):
        starred = {
            name: human(record[name], columns[name]) + " *" * (at in best[name]) for name in names if name in best
        }
        rows.append(tuple(starred.get(name, record[name]) for name in names))
    columns |= {name: Column(name, Kind.TEXT, about=columns[name].about) for name in best if name in columns}
    return Table(title, tuple(columns[name] for name in names), tuple(rows))


def marked(table: Table) -> Table:
    """All that is told of scenarios, the best cells marked by a star."""
    names = [column.name for column in table.columns if column.name not in ("best", "pareto")]
    return picked(table, names, table.title)


def demand_table(sustained: Table, rate: float) -> Table:
    """The demand curve: for each scenario and load, the fewest of the workers tried that sustain it.

    Source: Henning and Hasselbring, "How to measure scalability of distributed stream processing engines", 2021.
    """
    reached: dict[str, list[tuple[int, float]]] = {}
    for row in sustained.records():
        reached.setdefault(str(row["scenario"]), []).append((int(row["channels"] or 0), real(row["sustainable"])))
    rows: list[tuple[str | int | float | None, ...]] = []
    for name, load in product(reached, LOADS):
        enough = (channels for channels, sustains in reached[name] if sustains >= load * rate)
        rows.append((name, load * rate, load, min(enough, default=None)))
    return Table.from_rows("Demand", DEMAND_COLUMNS, rows)


def outcome_table(rows: Sequence[Sequence[Cell]]) -> Table:
    """The outcomes of scenarios beside each other."""
    return Table.from_rows("Scenarios", OUTCOME_COLUMNS, rows)
