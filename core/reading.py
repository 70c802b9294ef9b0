"""Readings of sources: rows, rejected rows, guesses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapt.core.phrases import percent
from adapt.core.table import Column, Kind, Table

LOUD = 0.01
"""Share of rejected rows above which a result may be about other rows than those of the source."""

READING_LOG = "adapt.reading"
"""Name of the log that says how the sources of the artefacts that are read were read."""

FOLDER = "_rejects"
"""The folder of a trace with its rejected rows."""


@dataclass(frozen=True, slots=True)
class Rejects:
    """Rejected rows."""

    rows: int = 0
    reasons: dict[str, int] = field(default_factory=dict)  # rows by reason, most frequent first
    # the first few rows of each reason: file, line and text (shortened)
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


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source was read."""

    rows: int  # all rows of the source
    rejects: Rejects = field(default_factory=Rejects)
    guesses: tuple[str, ...] = ()  # guessed settings, in words

    @property
    def share(self) -> float:
        """Share of the rows that were rejected."""
        return self.rejects.rows / max(1, self.rows)

    @property
    def sentence(self) -> str:
        """Rejected rows with reasons and the first; empty without any."""
        if not self.rejects.rows:
            return ""
        return f"{percent(self.share)} of all rows were rejected: {self.rejects.sentence()}"

    @property
    def caveat(self) -> str:
        """Rejected rows with reasons, for a result; empty without any."""
        return f"{self.sentence.partition('; first: ')[0]}." if self.rejects.rows else ""

    def as_data(self) -> dict[str, Any]:
        """The record as JSON data."""
        first = next((found[0] for found in self.rejects.examples.values() if found), None)
        return {
            "rows": self.rows,
            "rejected": self.rejects.rows,
            "reasons": self.rejects.reasons,
            "first_rejected": first,
            "guesses": list(self.guesses),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Reading":
        """The record that `as_data` made."""
        reasons, first = dict(data["reasons"]), data["first_rejected"]
        examples = {} if first is None else {next(iter(reasons)): [dict(first)]}
        return cls(data["rows"], Rejects(data["rejected"], reasons, examples), tuple(data["guesses"]))
