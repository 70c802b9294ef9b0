"""Compare two artefacts metric by metric: change and better side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from adapt.core.check.facts import Facts, Interval, Value
from adapt.core.metrics import METRICS, ROWS, Better, Metric
from adapt.core.phrases import percent
from adapt.core.table import Column, Table
from adapt.core.values import human, visible

MOST_ROWS = 40
"""Artefacts with more rows, such as periods of a long run, are compared by their summaries only."""

_SAME = 1e-9

Labels: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One metric in two artefacts."""

    metric: Metric
    where: Mapping[str, str]  # labels of the row; empty if there is only one row
    before: Interval
    after: Interval

    @property
    def is_sure(self) -> bool:
        """Whether the intervals of both do not overlap."""
        return self.after.low > self.before.high or self.after.high < self.before.low

    @property
    def side(self) -> str:
        """`better`, `worse`, `unsure` if intervals overlap, or empty without better side."""
        if self.metric.better is Better.NEITHER:
            return ""
        if not self.is_sure:
            return "unsure"
        return "better" if (self.after.low > self.before.low) == (self.metric.better is Better.HIGHER) else "worse"

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        ends = {"before": self.before, "after": self.after}
        values = {name: [end.low, end.high] if end.low != end.high else end.low for name, end in ends.items()}
        return {"metric": self.metric.name, "where": dict(self.where), **values, "side": self.side or None}


def changes(before: Facts, after: Facts) -> list[Change]:
    """Metrics in which two artefacts of a kind differ.

    Rows with the same labels are compared; single rows are compared whatever their labels.
    """
    found = []
    for metric in METRICS.values():
        olds, news = _rows(before, metric), _rows(after, metric)
        if len(olds) == len(news) == 1:
            news = {next(iter(olds)): next(iter(news.values()))}
        of_many = len(olds) > 1
        found += [
            Change(metric, dict(labels) if of_many else {}, old, new)
            for labels, old in olds.items()
            if old is not None and (new := news.get(labels)) is not None and _differ(old, new)
        ]
    return found


def difference_table(before: Facts, after: Facts, names: tuple[str, str]) -> Table:
    """Differences between two artefacts, one row per metric and row.

    Args:
        names: Different names of both.
    """
    found = changes(before, after)
    columns = [
        Column("metric"),
        *([Column("row")] if any(change.where for change in found) else []),
        *(Column(name) for name in names),
        Column("change", about=f"relative change from {names[0]} to {names[1]}"),
        Column("side", about="better or worse; unsure if the intervals of both overlap"),
    ]
    has_labels = len(columns) > 5
    rows = [
        (
            change.metric.name,
            *([", ".join(f"{name} {value}" for name, value in change.where.items())] if has_labels else []),
            *(_text(change.metric, end) for end in (change.before, change.after)),
            _relative(change),
            change.side,
        )
        for change in found
    ]
    return Table.from_rows(f"{visible(names[1])} compared with {visible(names[0])}", columns, rows)


def difference_sentence(before: Facts, after: Facts, names: tuple[str, str]) -> str:
    """Numbers of metrics in which the second artefact is better and worse."""
    found = changes(before, after)
    if not found:
        return f"{names[1]} and {names[0]} have equal metrics."
    sides = [change.side for change in found]
    metrics = "One metric differs:" if len(found) == 1 else f"{len(found)} metrics differ:"
    better = f"{metrics} {names[1]} is better than {names[0]} in {sides.count('better')}"
    first = next((change for change in found if change.side in ("better", "worse")), None)
    sentence = f"{better} and worse in {sides.count('worse')}"
    if first is None:
        return f"{sentence}."
    of = f" of {', '.join(first.where.values())}" if first.where else ""
    ends = f"{_text(first.metric, first.before)} to {_text(first.metric, first.after)}"
    return f"{sentence}; {first.metric.name}{of} changes from {ends}."


def _rows(facts: Facts, metric: Metric) -> dict[Labels, Value]:
    """Values of a metric by row labels; empty above `MOST_ROWS` rows."""
    table = metric.places.get(facts.kind)
    if table == ROWS and len(facts.tables.get(ROWS, ())) > MOST_ROWS:
        return {}
    return {
        tuple((name, value) for name, value in where.items() if name != "artefact"): value
        for where, value in facts.rows_with(metric)
    }


def _differ(old: Interval, new: Interval) -> bool:
    """Whether both differ by more than rounding."""
    return any(abs(a - b) > _SAME * max(abs(a), abs(b)) for a, b in ((old.low, new.low), (old.high, new.high)))


def _text(metric: Metric, value: Interval) -> str:
    ends = [human(end, metric.column) for end in (value.low, value.high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _relative(change: Change) -> str:
    """Relative change with its sign; the absolute change from zero."""
    old, new = ((end.low + end.high) / 2 for end in (change.before, change.after))
    if old == 0:
        return f"{'+' if new > 0 else '−'}{human(abs(new), change.metric.column)}"
    part = (new - old) / abs(old)
    return f"{'+' if part > 0 else '−'}{percent(abs(part))}" if abs(part) < 10 else f"{new / old:,.1f} times"
