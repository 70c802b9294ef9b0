"""Outcome of a check as a table, JSON data and JUnit XML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from adapt.core.check.facts import Facts, Interval, Value
from adapt.core.check.limit import Comparison, Limit
from adapt.core.metrics import Better
from adapt.core.table import Column, Displayed, Kind, Table
from adapt.core.values import human, visible

SCHEMA = "adapt.check/1"


@dataclass(frozen=True, slots=True)
class Judged:
    """Outcome of one limit on one artefact."""

    limit: Limit
    artefact: str
    rows: int  # number of rows checked; all must hold
    failed: int  # number of rows that fail
    where: Mapping[str, str]  # labels of the reported row: the worst that fails, or else the closest to failing
    value: Value  # its value; None if not measured, which fails
    amount: float | None  # the allowed value; None if the baseline has no such value
    baseline: Value = None  # the baseline's value, for a limit against a baseline

    @property
    def passed(self) -> bool:
        """Whether all rows hold."""
        return not self.failed

    @property
    def comparison(self) -> Comparison:
        """Comparison of the value with the amount."""
        return self.limit.comparison or towards(self.limit)


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Displayed):
    """Outcome of all limits on all artefacts."""

    judged: tuple[Judged, ...]

    def displayed(self) -> list[Table]:
        """Table."""
        return [verdict_table(self)]

    @property
    def passed(self) -> bool:
        """Whether all limits hold."""
        return all(each.passed for each in self.judged)

    @property
    def exit_code(self) -> int:
        """Exit code of a process that checks: 1 if a limit fails."""
        return int(not self.passed)


def verdict_table(verdict: Verdict) -> Table:
    """One row per limit and artefact."""
    relative = any(each.limit.comparison is None for each in verdict.judged)
    columns = (
        Column("result"),
        Column("limit"),
        Column("value"),
        *([Column("allowed")] if relative else []),
        Column("artefact"),
    )
    rows = []
    for each in verdict.judged:
        allowed = [_allowed(each)] if relative else []
        rows.append(("holds" if each.passed else "FAILS", each.limit.text, value_text(each), *allowed, _of(each)))
    return Table.from_rows("Limits", columns, rows, _summary(verdict))


def as_document(verdict: Verdict, artefacts: Sequence[Facts], baseline: Facts | None = None) -> dict[str, Any]:
    """One JSON document; durations in seconds, sizes in bytes, shares of 1."""
    return {
        "schema": SCHEMA,
        "passed": verdict.passed,
        "artefacts": [_artefact(facts) for facts in artefacts],
        "baseline": None if baseline is None else _artefact(baseline),
        "limits": [_judged(each) for each in verdict.judged],
    }


def junit_xml(verdict: Verdict) -> bytes:
    """JUnit XML with one test case per limit and artefact."""
    failures = sum(not each.passed for each in verdict.judged)
    counts = {"tests": str(len(verdict.judged)), "failures": str(failures), "errors": "0"}
    suites = ET.Element("testsuites", {"name": "adapt check", **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": "adapt check", **counts, "skipped": "0"})
    for each in verdict.judged:
        case = ET.SubElement(suite, "testcase", classname=visible(each.artefact), name=visible(each.limit.text))
        if not each.passed:
            failure = ET.SubElement(case, "failure", type="limit", message=visible(sentence(each)))
            failure.text = visible(f"{sentence(each)}; {_of(each)}")
    ET.indent(suites)
    data: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def sentence(judged: Judged) -> str:
    """Outcome of one limit in words."""
    what = f"{judged.limit.metric.name} is {value_text(judged)}"
    if judged.limit.comparison is None:
        return f"{what}; allowed: {_allowed(judged)}"
    return f"{what}; the limit is {judged.limit.bound}"


def value_text(judged: Judged) -> str:
    """The value as displayed."""
    return _text(judged, judged.value)


def _text(judged: Judged, value: Value) -> str:
    column = judged.limit.metric.column
    if value is None:
        return "not measured"
    if value.low == value.high:
        return human(value.low, column)
    if value.low == 0:
        return f"at most {human(value.high, column)}"
    if value.high == float("inf"):
        return f"at least {human(value.low, column)}"
    return f"{human(value.low, column)} to {human(value.high, column)}"


def _allowed(judged: Judged) -> str:
    """The allowed value, with the baseline it comes from."""
    if judged.limit.comparison is not None:
        return judged.limit.bound
    if judged.amount is None:
        return "not in the baseline"
    amount = human(judged.amount, _real(judged))
    return f"{judged.comparison} {amount} (baseline {_text(judged, judged.baseline)})"


def _real(judged: Judged) -> Column:
    """Column that displays an amount; a share of a count need not be whole."""
    column = judged.limit.metric.column
    return Column(column.name, Kind.NUMBER, column.unit) if column.kind is Kind.COUNT else column


def _of(judged: Judged) -> str:
    """The artefact and the reported row."""
    labels = ", ".join(f"{label}={value}" for label, value in judged.where.items() if label != "artefact")
    if judged.rows == 1:
        return f"{judged.artefact}: {labels}" if labels else judged.artefact
    fail = "fails" if judged.failed == 1 else "fail"
    failing = f"{judged.failed:,} of {judged.rows:,} rows {fail}" if judged.failed else f"of {judged.rows:,} rows"
    return f"{judged.artefact}: {failing}, worst: {labels}"


def _summary(verdict: Verdict) -> str:
    holding, all_of_them = sum(each.passed for each in verdict.judged), len(verdict.judged)
    if holding == all_of_them:
        return "The limit holds." if all_of_them == 1 else f"All {all_of_them:,} limits hold."
    return f"{all_of_them - holding:,} of {all_of_them:,} limits failed."


def _artefact(facts: Facts) -> dict[str, str]:
    return {"name": facts.name, "kind": facts.kind.value, "content_hash": facts.content_hash}


def _judged(judged: Judged) -> dict[str, Any]:
    metric = judged.limit.metric
    return {
        "limit": judged.limit.text,
        "passed": judged.passed,
        "artefact": judged.artefact,
        "metric": metric.name,
        "kind": metric.column.kind.value,
        "comparison": judged.comparison.value,
        "amount": judged.amount,
        "value": _ends(judged.value),
        "baseline": _ends(judged.baseline),
        "where": dict(_without_artefact(judged.where)),
        "rows": judged.rows,
        "failed": judged.failed,
    }


def _without_artefact(where: Mapping[str, str]) -> dict[str, str]:
    return {label: value for label, value in where.items() if label != "artefact"}


def _ends(value: Value) -> dict[str, float | None] | None:
    """Both ends of a value; null if infinite."""
    match value:
        case Interval(low, high):
            return {"low": low, "high": high if high != float("inf") else None}
        case _:
            return None


def towards(limit: Limit) -> Comparison:
    """Comparison with the baseline, by the metric's better side."""
    return Comparison.AT_LEAST if limit.metric.better is Better.HIGHER else Comparison.AT_MOST
