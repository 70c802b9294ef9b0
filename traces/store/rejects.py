"""Rejected rows of an ingest: counts by reason, with examples."""

from dataclasses import dataclass, field
from typing import Any

from adapt.core.table import Column, Kind, Table

FOLDER = "_rejects"
"""The folder of a trace with its rejected rows."""


@dataclass(frozen=True, slots=True)
class Rejects:
    """Rejected rows.

    Attributes:
        rows: Their number.
        reasons: Rows by reason, most frequent first.
        examples: The first few rows of each reason: file, line and text (shortened).
    """

    rows: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def table(self) -> Table:
        """Reasons with their counts and first examples."""
        columns = (
            Column("reason"),
            Column("rows", Kind.COUNT),
            Column("first at", about="file and line of the first such row"),
            Column("text", about="that row, shortened"),
        )
        rows = [
            (reason, count, f"{first['file']} line {first['line']}", first["text"])
            for reason, count in self.reasons.items()
            for first in self.examples.get(reason, [])[:1]
        ]
        return Table.from_rows(
            "Rejected rows", columns, rows, f"the trace keeps all of them, with their text, in {FOLDER}/"
        )

    def sentence(self) -> str:
        """The reasons in one line, with a first example."""
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self.reasons.items())
        first = next(iter(self.examples.values()), [])
        at = f"; first: {first[0]['file']} line {first[0]['line']}: {first[0]['text']!r}" if first else ""
        return reasons + at
