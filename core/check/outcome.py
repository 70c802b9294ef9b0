"""What became of limits, as a table for people, as data, and as JUnit's XML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from adapt.core.check.facts import Facts, Interval, Value
from adapt.core.check.limit import Comparison, Limit
from adapt.core.check.metrics import Better
from adapt.core.table import Column, Kind, Table
from adapt.core.values import human, visible

SCHEMA = "adapt.check/1"


@dataclass(frozen=True, slots=True)
class Judged:
    """One limit held against one artefact.

    Attributes:
        rows: How many of its rows were held against it; all must hold.
        failed: How many of them do not.
        where: What tells of the row that is told of: the worst that fails, or else the one closest to failing.
        value: Its value; None where it was not measured, which never holds.
        amount: What it was held against; None where the baseline has no such value.
        baseline: The value before, of a limit against a baseline.
    """

    limit: Limit
    artefact: str
    rows: int
    failed: int
    where: Mapping[str, str]
    value: Value
    amount: float | None
    baseline: Value = None

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return not self.failed

    @property
    def comparison(self) -> Comparison:
        """How the value was held against the amount."""
        return self.limit.comparison or towards(self.limit)


@dataclass(frozen=True, slots=True)
class Verdict:
    """All limits, held against all artefacts that they are about."""

    judged: tuple[Judged, ...]

    def _repr_html_(self) -> str:
        """Every limit with its outcome, for a notebook."""
        return verdict_table(self)._repr_html_()

    @property
    def passed(self) -> bool:
        """Whether all hold."""
        return all(each.passed for each in self.judged)


def verdict_table(verdict: Verdict) -> Table:
    """One row for each limit and artefact."""
    relative = any(each.limit.comparison is None for each in verdict.judged)
    columns = (
        Column("result"),
        Column("limit"),
        Column("value"),
        *([Column("allowed")] if relative else []),
        Column("of"),
    )
    rows = []
    for each in verdict.judged:
        allowed = [_allowed(each)] if relative else []
        rows.append(("holds" if each.passed else "FAILS", each.limit.text, value_text(each), *allowed, _of(each)))
    return Table.from_rows("Limits", columns, rows, _summary(verdict))


def as_document(verdict: Verdict, artefacts: Sequence[Facts], baseline: Facts | None = None) -> dict[str, Any]:
    """All of it as one JSON document; lengths of time in seconds, sizes in bytes, shares of 1."""
    return {
        "schema": SCHEMA,
        "passed": verdict.passed,
        "artefacts": [_artefact(facts) for facts in artefacts],
        "baseline": None if baseline is None else _artefact(baseline),
        "limits": [_judged(each) for each in verdict.judged],
    }


def junit_xml(verdict: Verdict) -> bytes:
    """A test suite with a test case for each limit and artefact; what XML cannot hold is written as escapes."""
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
    """What was found of one limit."""
    what = f"{judged.limit.metric.name} is {value_text(judged)}"
    if judged.limit.comparison is None:
        return f"{what}, where {_allowed(judged)} is allowed"
    return f"{what}, and is to be {judged.limit.bound}"


def value_text(judged: Judged) -> str:
    """The value as people read it."""
    return _text(judged, judged.value)


def _text(judged: Judged, value: Value) -> str:
    column = judged.limit.metric.shown_as()
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
    """What a limit came to, with what was before."""
    if judged.limit.comparison is not None:
        return judged.limit.bound
    if judged.amount is None:
        return "no such value before"
    amount = human(judged.amount, _real(judged))
    return f"{judged.comparison} {amount}, from {_text(judged, judged.baseline)}"


def _real(judged: Judged) -> Column:
    """How an amount is shown: a part of a whole number need not be whole."""
    column = judged.limit.metric.shown_as()
    return Column(column.name, Kind.NUMBER, column.unit) if column.kind is Kind.COUNT else column


def _of(judged: Judged) -> str:
    """The artefact, and the row of it that is told of."""
    told = ", ".join(f"{label}={value}" for label, value in judged.where.items() if label != "artefact")
    if judged.rows == 1:
        return f"{judged.artefact}: {told}" if told else judged.artefact
    fail = "fails" if judged.failed == 1 else "fail"
    failing = f"{judged.failed:,} of {judged.rows:,} rows {fail}" if judged.failed else f"of {judged.rows:,} rows"
    return f"{judged.artefact}: {failing}, worst: {told}"


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
        "kind": metric.kind.value,
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
    """Both ends of a value; null where it has none."""
    match value:
        case Interval(low, high):
            return {"low": low, "high": high if high != float("inf") else None}
        case _:
            return None


def towards(limit: Limit) -> Comparison:
    """Which side of its baseline a metric has to keep to."""
    return Comparison.AT_LEAST if limit.metric.better is Better.HIGHER else Comparison.AT_MOST
