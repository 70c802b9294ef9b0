"""Parts of a paper: sections of the page, judged claims and tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

from adapt.core.charts.chart import Chart
from adapt.core.report.page import Section
from adapt.core.table import Column, Kind, Table
from adapt.core.values import number
from paper.charts import REACH
from paper.claims import PAPER_RUNS, Judged, Verdict
from paper.estimates import Estimate
from paper.experiments import Experiment, Results

Scope = TypeVar("Scope")


@dataclass(frozen=True, slots=True)
class Shown:
    """A measured part of a paper.

    Attributes:
        section: Charts, tables and sentences.
        claims: The paper's claims in this part, judged.
    """

    section: Section
    claims: tuple[Judged, ...] = ()

    @property
    def tables(self) -> list[Table]:
        """All tables of the section, without duplicates, charts included."""
        return list(
            {id(table): table for table in (*(c.table for c in self.section.charts), *self.section.tables)}.values()
        )


@dataclass(frozen=True, slots=True)
class Part(Generic[Scope]):
    """A group of figures: its experiments and its presentation.

    Attributes:
        wanted: Experiments for a scope.
        shown: Builds the part from their results.
    """

    wanted: Callable[[Scope], Sequence[Experiment]]
    shown: Callable[[Scope, Results], Shown]

    @classmethod
    def of(cls, figures: ModuleType) -> "Part[Any]":
        """The part defined by `wanted` and `shown` of a module."""
        return cls(figures.wanted, figures.shown)


@dataclass(frozen=True, slots=True)
class Paper(Generic[Scope]):
    """A paper whose claims are measured.

    Attributes:
        name: Short name.
        title: Published title.
        scope: How much to measure.
        parts: Parts in the order of the page.
        made: Facts about the runs, in addition to versions and machine.
        runs: Number of runs that the paper averages over.
        preface: Introduction to the claims.
    """

    name: str
    title: str
    scope: Scope
    parts: Sequence[Part[Scope]]
    made: Mapping[str, Any]
    runs: int = PAPER_RUNS
    preface: Sequence[str] = ()

    def experiments(self) -> list[Experiment]:
        """All experiments of the paper."""
        return [experiment for part in self.parts for experiment in part.wanted(self.scope)]

    def shown(self, results: Results) -> list[Shown]:
        """All parts of the paper."""
        return [part.shown(self.scope, results) for part in self.parts]


def averaged(columns: Sequence[Column]) -> list[Column]:
    """Columns of means, each followed by the column of half its interval."""
    return [
        each
        for column in columns
        for each in (column, Column(column.name + REACH, column.kind, column.unit, "half the 95 % interval"))
    ]


def cells(*estimates: Estimate | None) -> list[float | None]:
    """Cells of estimates, for columns made by `averaged`."""
    return [cell for each in estimates for cell in ((None, None) if each is None else (each.mean, each.reach))]


def section(
    heading: str,
    sentences: Sequence[str],
    charts: Sequence[Chart],
    tables: Sequence[Table],
    claims: Iterable[Judged] = (),
) -> Shown:
    """A section that starts with the verdicts on its claims."""
    held = tuple(claims)
    told = [f"Of {len(held)} claims {counted(held)}."] if len(held) > 1 else [_said(each) for each in held]
    verdicts = [claim_table(f"Claims: {heading}", held)] if len(held) > 1 else []
    parts = (*verdicts, *tables)
    return Shown(Section(heading, (*sentences, *told), charts, parts, _OPEN_ROWS, is_part=True), held)


_OPEN_ROWS = 30
"""Longer tables of a section are collapsed."""

_MARKS = {Verdict.HOLDS: "✓", Verdict.DIRECTION: "≈", Verdict.UNCLEAR: "?", Verdict.FAILS: "✗"}

CLAIM_COLUMNS = (
    Column("claim"),
    Column("paper", about="the number that the paper reports"),
    Column("ours", Kind.NUMBER, about="mean of our measurements over seeds"),
    Column("low", Kind.NUMBER, about="lower end of the 95 % interval of the mean"),
    Column("high", Kind.NUMBER, about="upper end of the 95 % interval of the mean"),
    Column("runs", Kind.COUNT, about="number of seeds; 1 if the result does not depend on them"),
    Column("verdict"),
    Column("measured", about="description of our number"),
    Column("why", about="reason why it does not hold"),
)


def claim_table(title: str, claims: Iterable[Judged]) -> Table:
    """Claims with number, interval, verdict and reason."""
    rows = [
        (
            each.claim.text,
            each.claim.told,
            each.ours.mean,
            each.ours.low,
            each.ours.high,
            each.ours.runs,
            marked(each.verdict),
            each.claim.measure,
            each.why,
        )
        for each in claims
    ]
    return Table.from_rows(title, CLAIM_COLUMNS, rows)


def overview(title: str, claims: Iterable[Judged]) -> Table:
    """Every claim in a line: number, interval and verdict."""
    columns = (
        Column("where"),
        Column("claim"),
        Column("paper"),
        Column("ours", Kind.NUMBER),
        Column("ours" + REACH, Kind.NUMBER),
        Column("verdict"),
    )
    rows = [
        (
            each.claim.source,
            each.claim.text,
            each.claim.told,
            each.ours.mean,
            each.ours.reach,
            marked(each.verdict),
        )
        for each in claims
    ]
    return Table.from_rows(title, columns, rows)


def _said(judged: Judged) -> str:
    """A single claim, in a sentence."""
    claim = judged.claim
    return f"{claim.text}, {claim.told}: {judged.verdict} ({claim.measure} is {number(judged.ours.mean)})."


def marked(verdict: Verdict) -> str:
    """A verdict with its symbol."""
    return f"{_MARKS[verdict]} {verdict}"


def counted(claims: Iterable[Judged]) -> str:
    """Number of claims by verdict, as text."""
    held = [judged.verdict for judged in claims]
    number = {verdict: held.count(verdict) for verdict in Verdict}
    return (
        f"{number[Verdict.HOLDS]} hold, {number[Verdict.DIRECTION]} hold only in their direction,"
        f" {number[Verdict.UNCLEAR]} are not clear and {number[Verdict.FAILS]} do not hold"
    )
