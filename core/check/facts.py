"""Facts: labeled rows of measured values of an artefact."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, TypeAlias

from adapt.core.errors import UsageError, did_you_mean
from adapt.core.metrics import METRICS, RENAMED, Metric, Of
from adapt.core.phrases import with_article
from adapt.core.table import Table


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval that contains a value; equal ends if exact."""

    low: float
    high: float


Value: TypeAlias = Interval | None
"""None if not measured or not defined."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: its labels, and its values by column."""

    where: Mapping[str, str]
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Facts:
    """Measured values of one artefact."""

    name: str  # name given by the user
    kind: Of
    content_hash: str
    tables: Mapping[str, Sequence[Fact]]  # rows by table (`ROWS`, `SUMMARY`)

    def rows_with(self, metric: Metric) -> list[tuple[Mapping[str, str], Value]]:
        """Labels and value of each row with this metric.

        The artefact's name is one of the labels.
        """
        return [
            ({"artefact": self.name, **fact.where}, fact.values[metric.name])
            for fact in self.tables.get(metric.places.get(self.kind, ""), ())
            if metric.name in fact.values
        ]

    def refusal(self, metric: Metric) -> UsageError:
        """Error for a limit on a metric that this artefact lacks."""
        measured = [each.name for each in METRICS.values() if self.rows_with(each)]
        return UsageError(
            f"{self.name}, {with_article(self.kind)}, has no {metric.name}{did_you_mean(metric.name, measured)}"
        )


def facts_of_table(table: Table, labels: Iterable[str]) -> list[Fact]:
    """Rows of a table, labeled by columns that are not null."""
    return [fact_of(record, labels) for record in table.records()]


def fact_of(record: Mapping[str, Any], labels: Iterable[str]) -> Fact:
    """A row from named cells."""
    named = tuple(labels)
    where = {label: str(record[label]) for label in named if record.get(label) is not None}
    values = {
        RENAMED.get(name, name): value_of(cell)
        for name, cell in record.items()
        if cell is None or isinstance(cell, (int, float))
    }
    return Fact(where, values)


def value_of(cell: float | None) -> Value:
    """A cell as a value; None if missing or not finite."""
    return None if cell is None or not isfinite(cell) else Interval(cell, cell)


def with_derived(fact: Fact, *, alike: bool = True) -> Fact:
    """A placement row with derived metrics: `gap`, `top_share` and `useful_workers`.

    The best possible imbalance is max(1, N f1): above 1 it gives the top-key share, at 1 an upper bound of 1 / N. Only
    valid if channels are `alike`; with different capacities the share stays unknown.
    """
    imbalance, floor, channels = (fact.values.get(name) for name in ("imbalance", "best_possible", "channels"))
    gap = Interval(imbalance.low / floor.low, imbalance.high / floor.high) if imbalance and floor else None
    share = None
    if alike and floor and channels:
        most = floor.high / channels.high
        share = Interval(most if floor.low > 1 else 0.0, most)
    return Fact(fact.where, {"times_best_possible": gap, **of_top_share(share), **fact.values})


def of_top_share(share: Value) -> dict[str, Value]:
    """Top-key share and useful workers."""
    workers = None if share is None else Interval(1 / share.high, 1 / share.low if share.low else inf)
    return {"top_share": share, "useful_workers": workers}
