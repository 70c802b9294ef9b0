"""Lint findings: evidence, effect on conclusions, and fix."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from adapt.core.phrases import counted
from adapt.core.table import Column, Table

SCHEMA = "adapt.lint/1"

LINT = "Lint"
"""Title of a table of findings."""


class Severity(StrEnum):
    """Severity of a finding, worst first."""

    SEVERE = "severe"
    """Results are misleading."""
    WARNING = "warning"
    """Some conclusions do not hold, or are less certain."""
    NOTE = "note"
    """For information; conclusions hold."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A lint finding."""

    id: str  # name of its rule
    severity: Severity  # how serious it is
    evidence: str  # what was found, with numbers: a sentence
    effect: str  # effect on conclusions: a sentence
    fix: str = ""  # what to do about it, if anything
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"{self.severity}: {self.id}: {self.evidence}"

    def as_data(self) -> dict[str, Any]:
        """The finding as JSON data."""
        return asdict(self) | {"severity": self.severity.value, "fix": self.fix or None}


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Findings sorted by severity, stable within one."""
    ranks = list(Severity)
    return sorted(findings, key=lambda finding: ranks.index(finding.severity))


def lint_sentence(findings: Sequence[Finding] | None, trace: str) -> str:
    """Summary of the findings, or how to lint a trace without evidence."""
    if findings is None:
        return f"This trace has no lint evidence: run `adapt lint {trace}`."
    if not findings:
        return "Lint: no findings."
    by_severity = Counter(finding.severity for finding in findings)
    each = ", ".join(_counted(by_severity[severity], severity) for severity in Severity if by_severity[severity])
    return f"Lint: {counted(len(findings), 'finding')} ({each}): {', '.join(finding.id for finding in findings)}."


def _counted(findings: int, severity: Severity) -> str:
    return f"{findings} {severity}{'s' if findings > 1 and severity is not Severity.SEVERE else ''}"


def findings_table(findings: Sequence[Finding], title: str = LINT) -> Table:
    """Findings for people: evidence, effect, fix."""
    columns = (Column("severity"), Column("finding"), Column("evidence, effect, fix"))
    rows: list[tuple[str, str, str]] = []
    for finding in findings:
        rows.append((finding.severity.value, finding.id, finding.evidence))
        rows += [
            ("", "", f"{name}: {text}") for name, text in (("Effect", finding.effect), ("Fix", finding.fix)) if text
        ]
    return Table.from_rows(title, columns, rows)


def findings_columns(findings: Sequence[Finding]) -> Table:
    """The findings for programs: one column per part."""
    columns = (Column("severity"), Column("finding"), Column("evidence"), Column("effect"), Column("fix"))
    rows = [(one.severity.value, one.id, one.evidence, one.effect, one.fix or None) for one in findings]
    return Table.from_rows(LINT, columns, rows)
