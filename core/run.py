"""What every replay returns: tables, and all that decided them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from adapt.core.table import Table

SCHEMA = "adapt.run/1"
"""The format of a run as data."""


class Run(Protocol):
    """The outcome of a replay, whatever was replayed."""

    @property
    def mechanism(self) -> str:
        """What was replayed, by its command."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """All that decides the result, beside the stream; JSON data."""

    def summary(self) -> Table:
        """The whole run in one row."""

    def tables(self) -> Mapping[str, Table]:
        """Its series, by name."""


def run_as_data(
    mechanism: str, parameters: Mapping[str, Any], summary: Table, tables: Mapping[str, Table]
) -> dict[str, Any]:
    """A run as JSON data."""
    named = {"schema": SCHEMA, "mechanism": mechanism, "parameters": dict(parameters)}
    return {**named, "summary": summary.records()[0], **{name: table.records() for name, table in tables.items()}}


def verdict_under(table: Table, summary: Table) -> tuple[Table, Table]:
    """A run as people read it: the verdict, first in its summary, under another table, and the rest of the summary."""
    verdict, *rest = summary.rows[0]
    return replace(table, note=str(verdict)), replace(summary, columns=summary.columns[1:], rows=(tuple(rest),))
