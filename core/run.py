"""Runs: the common interface of replay results."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from adapt.core.table import Table

SCHEMA = "adapt.run/2"
"""The format of a run as data."""


class Run(Protocol):
    """The result of any replay."""

    @property
    def mechanism(self) -> str:
        """The replayed mechanism, as its command."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything except the stream that decides the result, as JSON data."""

    def summary(self) -> Table:
        """The whole run in one row."""

    def tables(self) -> Mapping[str, Table]:
        """Time series by name."""


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
