"""Check limits against artefacts and find the worst row."""

from collections.abc import Mapping, Sequence

from adapt.core.check.facts import Facts, Interval, Value
from adapt.core.check.limit import Comparison, Limit, refuse_unknown
from adapt.core.check.outcome import Judged, Verdict, towards
from adapt.core.errors import UsageError
from adapt.core.metrics import Better
from adapt.core.phrases import with_article

WORSE_BY = 0.05
"""Tolerated relative change for the worse against a baseline, where a limit has none of its own."""


def judge(limits: Sequence[Limit], artefacts: Sequence[Facts], baseline: Facts | None = None) -> Verdict:
    """Check every limit against every artefact that has its metric.

    A limit holds if it holds for all rows. For an interval it must hold for every value in it. A value that was not
    measured fails.

    Args:
        limits: At least one.
        artefacts: At least one.
        baseline: Reference for limits without an amount: rows are matched by label, or one row to one row.
    """
    _check_baseline(limits, baseline)
    judged = []
    for limit in limits:
        rows = {facts.name: facts.rows_with(limit.metric) for facts in artefacts}
        if not any(rows.values()):
            raise _about(limit, artefacts[0].refusal(limit.metric))
        try:
            refuse_unknown(limit.selectors, [where for found in rows.values() for where, _ in found])
        except UsageError as error:
            raise _about(limit, error) from None
        selected = {name: _selected(limit, found) for name, found in rows.items()}
        if not any(selected.values()):
            raise _about(limit, UsageError("no row of any artefact matches the selectors in brackets"))
        before = _selected(limit, baseline.rows_with(limit.metric), but="artefact") if baseline else []
        if limit.comparison is None and baseline is not None and not baseline.rows_with(limit.metric):
            raise _about(limit, baseline.refusal(limit.metric))
        judged += [_judged(limit, name, found, before) for name, found in selected.items() if found]
    for facts in artefacts:
        if all(each.artefact != facts.name for each in judged):
            raise UsageError(
                f"no limit applies to {facts.name}, {with_article(facts.kind)}; add one, or omit the artefact"
            )
    return Verdict(tuple(judged))


def _check_baseline(limits: Sequence[Limit], baseline: Facts | None) -> None:
    against = [limit for limit in limits if limit.comparison is None]
    if against and baseline is None:
        raise _about(
            against[0],
            UsageError(f"it needs an amount, such as {against[0].metric.name}<=1.2, or --baseline"),
        )
    if baseline is not None and not against:
        raise UsageError(
            f"no limit uses --baseline {baseline.name}; give a metric without an amount, such as --limit"
            f" {limits[0].metric.name}"
        )


def _about(limit: Limit, error: UsageError) -> UsageError:
    return UsageError(f"limit {limit.text!r}: {error}")


Rows = Sequence[tuple[Mapping[str, str], Value]]


def _selected(limit: Limit, rows: Rows, but: str = "") -> Rows:
    selectors = [each for each in limit.selectors if each.label != but]
    return [row for row in rows if all(each.takes(row[0]) for each in selectors)]


def _judged(limit: Limit, artefact: str, rows: Rows, before: Rows) -> Judged:
    comparison = limit.comparison or towards(limit)
    checked = []
    for where, value in rows:
        amount, baseline = limit.amount, None
        if limit.comparison is None:
            baseline = before[0][1] if len(before) == len(rows) == 1 else _counterpart(where, before)
            amount = _allowed(limit, baseline)
        holds = value is not None and amount is not None and _holds(comparison, value, amount)
        checked.append((where, value, amount, baseline, holds))
    where, value, amount, baseline, _ = min(checked, key=lambda each: (each[4], _room(comparison, each[1], each[2])))
    return Judged(limit, artefact, len(checked), sum(not each[4] for each in checked), where, value, amount, baseline)


def _counterpart(where: Mapping[str, str], before: Rows) -> Value:
    """The value of the baseline row with the same labels."""
    wanted = {label: value for label, value in where.items() if label != "artefact"}
    found = [value for labels, value in before if {**labels, "artefact": ""} == {**wanted, "artefact": ""}]
    return found[0] if len(found) == 1 else None


def _allowed(limit: Limit, baseline: Value) -> float | None:
    """The worst value allowed by a baseline; like ends of intervals are compared."""
    if baseline is None:
        return None
    by = WORSE_BY if limit.amount is None else limit.amount
    if limit.metric.better is Better.HIGHER:
        return baseline.low * (1 - by)
    return baseline.high * (1 + by)


def _holds(comparison: Comparison, value: Interval, amount: float) -> bool:
    """Whether the comparison holds for every value of the interval."""
    match comparison:
        case Comparison.AT_MOST:
            return value.high <= amount
        case Comparison.BELOW:
            return value.high < amount
        case Comparison.AT_LEAST:
            return value.low >= amount
        case Comparison.ABOVE:
            return value.low > amount
        case Comparison.EQUAL:
            return value.low == value.high == amount


def _room(comparison: Comparison, value: Value, amount: float | None) -> float:
    """Distance of a value from failing; minus infinity if it is missing."""
    if value is None or amount is None:
        return float("-inf")
    if comparison in (Comparison.AT_MOST, Comparison.BELOW):
        return amount - value.high
    if comparison is Comparison.EQUAL:
        return -max(abs(value.low - amount), abs(value.high - amount))
    return value.low - amount
