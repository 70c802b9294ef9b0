"""A finding: what is odd in a trace, by its numbers; what that does to conclusions; what to do about it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from adapt.core.phrases import counted
from adapt.core.table import Column, Table

SCHEMA = "adapt.lint/1"


class Severity(StrEnum):
    """How much hangs on a finding, worst first."""

    SEVERE = "severe"
    """Numbers of this program mean something else than they seem to."""
    WARNING = "warning"
    """Some conclusions do not hold, or hold with less certainty."""
    NOTE = "note"
    """Good to know; conclusions hold."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        id: Its name, the same for every trace.
        severity: How much hangs on it.
        evidence: What was seen, with its numbers: a sentence.
        effect: What it does to conclusions: a sentence.
        mend: What can be done about it, if anything.
    """

    id: str
    severity: Severity
    evidence: str
    effect: str
    mend: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The finding in a line."""
        return f"{self.severity}: {self.id}: {self.evidence}"

    def as_data(self) -> dict[str, Any]:
        """The finding as JSON data."""
        return asdict(self) | {"severity": self.severity.value, "mend": self.mend or None}


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """By severity; those of one severity as they come."""
    ranks = list(Severity)
    return sorted(findings, key=lambda finding: ranks.index(finding.severity))


def lint_sentence(findings: Sequence[Finding] | None, trace: str) -> str:
    """What a report says of the lint: how much was found, or how it is found in a trace without evidence."""
    if findings is None:
        return f"This trace is older than the lint: `adapt lint {trace}` looks through it."
    if not findings:
        return "The lint found nothing odd."
    by_severity = Counter(finding.severity for finding in findings)
    told = ", ".join(_counted(by_severity[severity], severity) for severity in Severity if by_severity[severity])
    return (
        f"The lint found {counted(len(findings), 'thing')} ({told}): {', '.join(finding.id for finding in findings)}."
    )


def _counted(findings: int, severity: Severity) -> str:
    return f"{findings} {severity}{'s' if findings > 1 and severity is not Severity.SEVERE else ''}"


def findings_table(findings: Sequence[Finding], title: str = "Lint") -> Table:
    """The findings for people: below what was found stands what it does to conclusions, and how to mend it."""
    columns = (Column("severity"), Column("finding"), Column("what was found, what it does, and what to do"))
    rows: list[tuple[str, str, str]] = []
    for finding in findings:
        rows.append((finding.severity.value, finding.id, finding.evidence))
        rows += [("", "", text) for text in (finding.effect, finding.mend) if text]
    return Table.from_rows(title, columns, rows)


def findings_columns(findings: Sequence[Finding]) -> Table:
    """The findings for programs: every part in a column of its own."""
    columns = (Column("severity"), Column("finding"), Column("evidence"), Column("effect"), Column("mend"))
    rows = [(one.severity.value, one.id, one.evidence, one.effect, one.mend or None) for one in findings]
    return Table.from_rows("Lint", columns, rows)
