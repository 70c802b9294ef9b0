"""Runs: the one form of results of replays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from adapt.core.table import Column, Displayed, Table

SCHEMA = "adapt.run/2"
"""The format of a run as data."""

SAID = (Column("verdict", about="what to do"), Column("notes", about="what the result rests on"))
"""The columns of a summary in words."""


class Run(Displayed):
    """The result of a replay: conclusion, summary, cases, series.

    A mechanism adds tables of its own.
    """

    __slots__ = ()

    mechanism: ClassVar[str]  # the replayed mechanism, as its command
    first: ClassVar[str] = "cases"  # the table with the cases
    brief: ClassVar[str]  # at most six of its columns, with headings, which are shown below the conclusion
    parameters: Mapping[str, Any]  # everything except the stream that decides the result; JSON data

    @property
    def today(self) -> str:
        """What the first case, without the mechanism, is called there."""
        return "today"

    @property
    def is_timed(self) -> bool:
        """Whether the result depends on the times of the trace."""
        return True

    def conclusion(self) -> str:
        """What to do, in one to three sentences."""
        raise NotImplementedError

    def notes(self) -> Sequence[str]:
        """What else the result rests on."""
        return ()

    def facts(self) -> Table:
        """The whole run in one row, without sentences."""
        raise NotImplementedError

    def summary(self) -> Table:
        """The whole run in one row, its conclusion first."""
        facts = self.facts()
        row = (self.conclusion(), " ".join(filter(None, self.notes())) or None, *facts.rows[0])
        return replace(facts, columns=(*SAID, *facts.columns), rows=(row,))

    def tables(self) -> Mapping[str, Table]:
        """Cases and time series by name."""
        raise NotImplementedError

    def leading(self) -> Table:
        """The one table below the conclusion."""
        table = self.tables()[self.first].only(self.brief)
        (_, *first), *others = table.rows
        return replace(table, rows=((self.today, *first), *others))

    def shown(self) -> Sequence[Table]:
        """All tables for people."""
        return self.tables()[self.first], self.facts()

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    @property
    def said(self) -> Sequence[str]:
        """The conclusion."""
        return [self.conclusion()]

    def displayed(self) -> Sequence[Table]:
        """All tables for people."""
        return self.shown()


def run_as_data(
    mechanism: str, parameters: Mapping[str, Any], summary: Table, tables: Mapping[str, Table]
) -> dict[str, Any]:
    """A run as JSON data."""
    named = {"schema": SCHEMA, "mechanism": mechanism, "parameters": dict(parameters)}
    return {**named, "summary": summary.records()[0], **{name: table.records() for name, table in tables.items()}}


def parted(summary: Table) -> tuple[list[str], Table]:
    """The sentences of a summary, the conclusion first, and its facts."""
    said = {column.name for column in SAID}
    (row,) = summary.records()
    facts = [column for column in summary.columns if column.name not in said]
    cells = tuple(row[column.name] for column in facts)
    return [str(row[name]) for name in row if name in said and row[name]], replace(
        summary, columns=tuple(facts), rows=(cells,)
    )
