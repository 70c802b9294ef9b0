"""Rows that an ingest refused: how many, for which reasons, with examples."""

from dataclasses import dataclass, field
from typing import Any

from adapt.core.table import Column, Kind, Table

FOLDER = "_rejects"
"""The folder of a trace that keeps them."""


@dataclass(frozen=True, slots=True)
class Rejects:
    """Rows that were refused.

    Attributes:
        rows: How many.
        reasons: How many for each reason, most first.
        examples: For each reason the first few: file, line and text (cut short).
    """

    rows: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def table(self) -> Table:
        """Reasons with their counts and a first example each."""
        columns = (
            Column("reason"),
            Column("rows", Kind.COUNT),
            Column("first at", about="file and line of the first such row"),
            Column("text", about="that row, cut short"),
        )
        rows = [
            (reason, count, f"{first['file']} line {first['line']}", first["text"])
            for reason, count in self.reasons.items()
            for first in self.examples.get(reason, [])[:1]
        ]
        return Table.from_rows(
            "Refused rows", columns, rows, f"all of them, with their text, lie in {FOLDER}/ of the trace"
        )

    def sentence(self) -> str:
        """The reasons in one line, with the first place of the most frequent one."""
        told = ", ".join(f"{reason} ({count:,})" for reason, count in self.reasons.items())
        first = next(iter(self.examples.values()), [])
        at = f"; first: {first[0]['file']} line {first[0]['line']}: {first[0]['text']!r}" if first else ""
        return told + at
