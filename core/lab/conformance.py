"""Outcome of the checks of a policy, each with its first counterexample."""

from dataclasses import dataclass
from typing import Any

from adapt.core.table import Column, Displayed, Table

SCHEMA = "adapt.lab/1"


@dataclass(frozen=True, slots=True)
class Check:
    """Outcome of one check."""

    name: str
    passed: bool | None  # whether it holds; None, it does not apply or was not reached
    said: str  # what was tried, or the first counterexample

    @property
    def result(self) -> str:
        """The outcome in a word."""
        return {True: "passes", False: "FAILS", None: "-"}[self.passed]


@dataclass(frozen=True, slots=True, repr=False)
class Conformance(Displayed):
    """Outcome of all checks of a policy."""

    subject: str  # the policy's name
    checks: tuple[Check, ...]
    about: dict[str, Any]  # what decides its results, as JSON data; empty for a built-in one

    @property
    def passed(self) -> bool:
        """Whether no check fails."""
        return not any(each.passed is False for each in self.checks)

    @property
    def exit_code(self) -> int:
        """Exit code of a process that checks: 1 if a check fails."""
        return int(not self.passed)

    def displayed(self) -> list[Table]:
        """One row per check."""
        columns = Column("check"), Column("result"), Column("evidence")
        rows = [(each.name, each.result, each.said) for each in self.checks]
        failed = sum(each.passed is False for each in self.checks)
        note = f"{failed} of {len(rows)} checks failed." if failed else "No check failed."
        return [Table.from_rows(f"Checks of {self.subject}", columns, rows, note)]

    def as_data(self) -> dict[str, Any]:
        """One JSON document."""
        checks = [{"check": each.name, "passed": each.passed, "evidence": each.said} for each in self.checks]
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "own": self.about or None,
            "passed": self.passed,
            "checks": checks,
        }
