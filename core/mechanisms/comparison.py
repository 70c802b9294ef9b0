"""Comparison of scenarios: best in each column, Pareto front, advice, demand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

from adapt.core.mechanisms.outcome import OUTCOME_COLUMNS
from adapt.core.mechanisms.recommendation import Advice, Frame, advice_of, is_dominated, point_of, ranking, real
from adapt.core.mechanisms.scenarios import BASELINE, Scenario
from adapt.core.mechanisms.sweep import (
    Finding,
    over_seeds,
    over_seeds_table,
    points_table,
)
from adapt.core.metrics import column_named, columns_named
from adapt.core.phrases import counted, percent
from adapt.core.run import Run
from adapt.core.stage.input.offered_load import OWN_COLUMNS, own_cells
from adapt.core.stage.outcome import SHED
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import duration, human

LOWER = (
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "drop_rate",
    "worker_time",
    "idle_workers",
    "imbalance_max",
    "state_moved_bytes",
    "paused",
    "downtime",
    "rescales",
)
"""Columns in which less is better; throughput is the only one in which more is."""

MARKED = ("throughput", *LOWER)
"""Columns whose best cells are marked."""

DID = "Rescaling and migration"
"""Title of the table of what mechanisms did."""

_FIRST, _BRIEF = 5, ("scenario", "latency_p99", "worker_time", "drop_rate", "state_moved_bytes")
"""Scenarios below the conclusion, and what is shown of them."""

_SAME = 1.005
"""Two cells are equally good up to this ratio."""

LOADS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Multiples of the stream's rate in the demand curve."""

SUSTAINED_COLUMNS = (
    Column("scenario"),
    Column("channels", Kind.COUNT, "", "or the pool of scenarios that scale"),
    column_named("sustainable"),
    Column("speedup", Kind.NUMBER, "", "speed-up of the stream at that rate"),
    Column("bound", Kind.NUMBER, "rows/s", "upper bound by the busiest channel of the initial placement"),
    Column("even_bound", Kind.NUMBER, "rows/s", "upper bound by all channels or the whole pool"),
    Column("probes", Kind.COUNT, "", "number of rates tried"),
)

DEMAND_COLUMNS = (
    Column("scenario"),
    Column("rate", Kind.NUMBER, "rows/s"),
    Column("load", Kind.NUMBER, "", "multiple of the stream's rate"),
    Column("workers", Kind.COUNT, "", "fewest workers tried that sustain it; missing if none does"),
)

SUMMARY_COLUMNS = (
    Column("advice", about="recommended scenario"),
    column_named("rows"),
    Column("channels", Kind.COUNT, about="workers of scenarios that do not scale"),
    Column("pool", Kind.COUNT, "workers", "maximum of scenarios that scale"),
    Column("speedup", Kind.NUMBER, about="trace seconds per second of the stage"),
    column_named("offered"),
    Column("work", Kind.NUMBER, "workers", "average number of workers that the rows keep busy"),
    Column("seconds", Kind.SECONDS, "s", "when the last row arrives"),
    Column("rate", Kind.NUMBER, "rows/s", "arrival rate at this speed-up"),
    column_named("top_share"),
    *OWN_COLUMNS,
)


@dataclass(frozen=True, slots=True, repr=False)
class ComparisonRun(Run):
    """The result of a comparison."""

    mechanism: ClassVar[str] = "compare"
    first: ClassVar[str] = "scenarios"

    frame: Frame  # stream and stage that the scenarios share
    outcomes: Table  # `OUTCOME_COLUMNS`, one row per scenario, `BASELINE` first
    sustained: Table  # `SUSTAINED_COLUMNS`; empty unless measured
    scenarios: tuple[Scenario, ...]  # the compared scenarios
    parameters: Mapping[str, Any]  # everything that decides the result except the stream; JSON data
    # what is recommended at each point of a sweep, the given one first; empty without a sweep
    findings: Sequence[Finding] = ()

    @property
    def _advice(self) -> Advice:
        if self.findings:
            return self.findings[0].advice
        return advice_of(self.outcomes.records(), {one.name: one for one in self.scenarios}, self.frame)

    def conclusion(self) -> str:
        """The need at the own rate, then what to do."""
        action = over_seeds(self.findings[0]) if self.findings else self._advice.sentence
        return f"{self.frame.need} {action}".strip()

    def notes(self) -> list[str]:
        """What was offered."""
        frame = self.frame
        queues = " and ".join(dict.fromkeys(str(each) for each in self.outcomes.values("queueing")))
        return [
            f"All {frame.rows:,} rows arrive in {duration(frame.last_s)} and keep {frame.work:.1f} workers busy;"
            f" latencies are with {queues} queues.",
        ]

    def facts(self) -> Table:
        """One row, with the recommended scenario."""
        frame = self.frame
        rate = frame.rows / frame.last_s if frame.last_s else None
        load = frame.rows, frame.channels, frame.pool, frame.speedup, frame.offered, frame.work, frame.last_s
        row = (self._advice.scenario, *load, rate, frame.top_share, *own_cells(frame.own))
        return Table.from_rows("The comparison", SUMMARY_COLUMNS, [row])

    def leading(self) -> Table:
        """The recommended scenario, the baseline, the best others; or the points."""
        if len(self.findings) > 1:
            heads = "offered: load, scenario, keeps_up: keeps up, latency_p99: p99, worker_time: worker time"
            return points_table(self.findings).only(f"workers, {heads}")
        found = self.findings[0] if self.findings else None
        means = {str(each["scenario"]): each for each in (found.means() if found else self.outcomes.records())}
        ranked = ranking(list(means.values()), {one.name: one for one in self.scenarios}, self.frame)
        first = [name for name in (self._advice.scenario, BASELINE) if name]
        names = list(dict.fromkeys([*first, *(str(each["scenario"]) for each in ranked)]))[:_FIRST]
        wins = [f"{found.race.picks().count(name)} of {found.seeds}" if found else None for name in names]
        rows = [(*(means[name][cell] for cell in _BRIEF), of) for name, of in zip(names, wins, strict=True)]
        columns = (Column("scenario"), *columns_named(" ".join(_BRIEF[1:])), Column("wins"))
        title = f"Best of {counted(len(self.scenarios), 'scenario')}"
        heads = "latency_p99: p99, worker_time: worker time, drop_rate: dropped, state_moved_bytes: state moved"
        return Table.from_rows(title, columns, rows).only(f"scenario, {heads}, wins")

    def tables(self) -> dict[str, Table]:
        """All tables by name.

        `scenarios`; `points`, `changes` and `over_seeds` of a sweep; `sustained` and `demand` where measured.
        """
        tables = {"scenarios": with_best(self.outcomes, self._sustainable())}
        if self.findings:
            tables |= {"points": points_table(self.findings), "over_seeds": over_seeds_table(self.findings)}
        if self.sustained.rows:
            rate = self.frame.rows / self.frame.last_s
            tables |= {"sustained": self.sustained, "demand": demand_table(self.sustained, rate)}
        return tables

    def _sustainable(self) -> dict[str, Cell]:
        """The rate that each scenario sustains with its own number of workers; empty unless measured."""
        frame, rows = self.frame, self.sustained.records()
        here = {one.name: frame.channels if one.elastic is None else one.pool or frame.pool for one in self.scenarios}
        own = (row for row in rows if row["channels"] == here[str(row["scenario"])])
        return {str(row["scenario"]): row["sustainable"] for row in own}

    def shown(self) -> list[Table]:
        """Tables for people, the best cells of each column marked."""
        return shown_tables(self.tables())


def shown_tables(tables: Mapping[str, Table]) -> list[Table]:
    """Tables for people: quality and cost, mechanisms at work, sustained rates."""
    scenarios = tables["scenarios"]
    shown = ("scenario", "throughput", "latency_p50", "latency_p95", "latency_p99", "drop_rate", "worker_time")
    names = ("scenario", *MARKED[6:], "workers_max", "messages", "message_bytes")
    did = picked(scenarios, names, DID)
    best = f"* marks the best of a column, of scenarios that drop at most {percent(SHED)} of the rows."
    first = replace(picked(scenarios, shown, "Scenarios"), note=best)
    rest = [tables[name] for name in ("sustained", "demand") if name in tables]
    swept = [tables[name] for name in ("points", "over_seeds") if name in tables]
    return [first, *swept, did, *([_beside(rest[0]), _across(rest[1])] if rest else [])]


def _beside(sustained: Table) -> Table:
    """The sustained rates with their bounds, for people."""
    note = "The highest rate at which rows wait no longer in the second half of the input than in the first."
    return Table("Sustainable throughput", sustained.columns, sustained.rows, note)


def _across(demand: Table) -> Table:
    """One row per scenario, one column per load."""
    loads = list(dict.fromkeys(float(str(load)) for load in demand.values("load")))
    records = demand.records()
    needed = {(row["scenario"], row["load"]): row["workers"] for row in records}
    names = list(dict.fromkeys(row["scenario"] for row in records))
    columns = (Column("scenario"), *(Column(f"{load:g}x", Kind.COUNT) for load in loads))
    rows = [(name, *(needed[name, load] for load in loads)) for name in names]
    note = "Columns are multiples of the stream's rate; missing where no number of workers tried sustains it."
    return Table.from_rows("Workers needed against load", columns, rows, note)


def with_best(outcomes: Table, sustainable: Mapping[str, Cell] | None = None) -> Table:
    """The outcomes with sustained rates, Pareto front, and best columns."""
    best, front = best_of(outcomes), pareto(outcomes)
    columns = (
        *outcomes.columns,
        column_named("sustainable"),
        Column("pareto", about="whether no other scenario dominates it in worker time, p99 and drop rate"),
        Column("best", about="columns in which it is best"),
    )
    rows = []
    for at, row in enumerate(outcomes.rows):
        best_in = ", ".join(name for name in MARKED if at in best[name])
        name = str(row[0])
        rows.append((*row, (sustainable or {}).get(name), "yes" if at in front else "no", best_in))
    return Table.from_rows("Scenarios", columns, rows)


def best_of(outcomes: Table) -> dict[str, set[int]]:
    """The best rows of each column; empty if most rows are.

    A scenario that drops more than `SHED` of the rows is best at nothing: what is left to do is less.
    """
    found: dict[str, set[int]] = {}
    records = enumerate(outcomes.records())
    whole = {at for at, row in records if real(row["drop_rate"]) <= SHED}
    for name in MARKED:
        cells = {
            at: float(cell)
            for at, cell in enumerate(outcomes.values(name))
            if at in whole and isinstance(cell, int | float)
        }
        if name != "throughput":
            best = min(cells.values(), default=0.0)
            at_best = {at for at, cell in cells.items() if cell <= best * _SAME + 1e-12}
        else:
            best = max(cells.values(), default=0.0)
            at_best = {at for at, cell in cells.items() if cell * _SAME >= best}
        found[name] = set() if 2 * len(at_best) > len(outcomes.rows) else at_best
    return found


def pareto(outcomes: Table) -> set[int]:
    """Pareto-optimal rows by worker time, p99 and drop rate."""
    points = {at: point_of(record) for at, record in enumerate(outcomes.records())}
    return {at for at, one in points.items() if not is_dominated(one, points.values())}


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
    """All columns of the scenarios, the best cells marked by a star."""
    names = [column.name for column in table.columns if column.name not in ("best", "pareto")]
    return picked(table, names, table.title)


def demand_table(sustained: Table, rate: float) -> Table:
    """The demand curve: fewest workers tried that sustain each load, per scenario.

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
    """The outcomes of all scenarios as a table."""
    return Table.from_rows("Scenarios", OUTCOME_COLUMNS, rows)
