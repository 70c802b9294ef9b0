"""Runs: the one form of results of replays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from adapt.core.table import Displayed, Table

SCHEMA = "adapt.run/2"
"""The format of a run as data."""


class Run(Displayed):
    """The result of a replay: verdict and summary, cases, series.

    A mechanism adds tables of its own.
    """

    __slots__ = ()

    mechanism: ClassVar[str]  # the replayed mechanism, as its command
    first: ClassVar[str] = "cases"  # the table with the cases
    parameters: Mapping[str, Any]  # everything except the stream that decides the result; JSON data

    def summary(self) -> Table:
        """The whole run in one row."""
        raise NotImplementedError

    def tables(self) -> Mapping[str, Table]:
        """Cases and time series by name."""
        raise NotImplementedError

    def shown(self) -> Sequence[Table]:
        """Cases noted with the verdict, and the rest of the summary."""
        return verdict_under(self.tables()[self.first], self.summary())

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def displayed(self) -> Sequence[Table]:
        """Summary and cases."""
        return [self.summary(), self.tables()[self.first]]


def run_as_data(
    mechanism: str, parameters: Mapping[str, Any], summary: Table, tables: Mapping[str, Table]
) -> dict[str, Any]:
    """A run as JSON data."""
    named = {"schema": SCHEMA, "mechanism": mechanism, "parameters": dict(parameters)}
    return {**named, "summary": summary.records()[0], **{name: table.records() for name, table in tables.items()}}


def verdict_under(table: Table, summary: Table) -> tuple[Table, Table]:
    """The verdict, moved from a summary to the note of a table."""
    verdict, *rest = summary.rows[0]
    return replace(table, note=str(verdict)), replace(summary, columns=summary.columns[1:], rows=(tuple(rest),))
