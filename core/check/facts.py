"""What an artefact measured, as limits are held against it: rows with labels, and a value a column."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, TypeAlias

from adapt.core.check.metrics import METRICS, Metric, Of
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.table import Table


@dataclass(frozen=True, slots=True)
class Interval:
    """A value that is known to lie between two ends; they are the same where it is known exactly."""

    low: float
    high: float


Value: TypeAlias = Interval | None
"""None where it was not measured, or is not defined."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: what tells it from the others, and its values by column."""

    where: Mapping[str, str]
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Facts:
    """What one artefact measured.

    Attributes:
        name: As the user named it.
        content_hash: Of what it holds.
        tables: Its rows by table (`ROWS`, `SUMMARY`).
    """

    name: str
    kind: Of
    content_hash: str
    tables: Mapping[str, Sequence[Fact]]

    def rows_with(self, metric: Metric) -> list[tuple[Mapping[str, str], Value]]:
        """The labels and the value of each row that has this metric; nothing where the artefact has it not.

        A row's labels tell of the artefact too.
        """
        table, column = metric.places.get(self.kind, ("", ""))
        return [
            ({"artefact": self.name, **fact.where}, fact.values[column])
            for fact in self.tables.get(table, ())
            if column in fact.values
        ]

    def refusal(self, metric: Metric) -> UsageError:
        """Why there is no holding a limit on this metric against it."""
        measured = [each.name for each in METRICS.values() if self.rows_with(each)]
        return UsageError(f"{self.name}, a {self.kind}, has no {metric.name}{did_you_mean(metric.name, measured)}")


def facts_of_table(table: Table, labels: Iterable[str]) -> list[Fact]:
    """The rows of a table; the columns that tell them apart are their labels, where they say anything."""
    return [fact_of(record, labels) for record in table.records()]


def fact_of(record: Mapping[str, Any], labels: Iterable[str]) -> Fact:
    """A row of named cells."""
    named = tuple(labels)
    where = {label: str(record[label]) for label in named if record.get(label) is not None}
    values = {name: value_of(cell) for name, cell in record.items() if cell is None or isinstance(cell, (int, float))}
    return Fact(where, values)


def value_of(cell: float | None) -> Value:
    """A cell as a value: none where it is missing or not finite, which is how infinite ratios are told."""
    return None if cell is None or not isfinite(cell) else Interval(cell, cell)


def with_derived(fact: Fact, *, alike: bool = True) -> Fact:
    """A row of placement with what follows from its metrics: `gap`, `top_share` and `useful_workers`.

    The floor of the imbalance is max(1, N f1): above 1 it tells the share of the heaviest key, and at 1 that this is at
    most 1 / N. That holds where channels are `alike`; where they differ in capacity, or may, the share is not told.
    """
    imbalance, floor, channels = (fact.values.get(name) for name in ("imbalance", "imbalance_floor", "channels"))
    gap = Interval(imbalance.low / floor.low, imbalance.high / floor.high) if imbalance and floor else None
    share = None
    if alike and floor and channels:
        most = floor.high / channels.high
        share = Interval(most if floor.low > 1 else 0.0, most)
    return Fact(fact.where, {"gap": gap, **of_top_share(share), **fact.values})


def of_top_share(share: Value) -> dict[str, Value]:
    """The share of the heaviest key, and how many channels can be busy."""
    workers = None if share is None else Interval(1 / share.high, 1 / share.low if share.low else inf)
    return {"top_share": share, "useful_workers": workers}
