"""Skew over time: the verdict on each of several equal-sized windows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapt.core.metrics import columns_named
from adapt.core.out_of_sample.windows import start_column
from adapt.core.table import Column, Kind, Table
from adapt.core.verdict.verdict_class import VerdictClass


@dataclass(frozen=True, slots=True)
class JudgedWindow:
    """A window and its skew."""

    start_us: int  # time of its first row, in microseconds since 1970
    rows: int
    top_key: str  # the hottest key as displayed
    top_share: float  # its share of the load
    imbalance: float  # busiest worker over the mean, as placed today
    best_possible: float  # best possible imbalance with whole keys
    verdict_class: VerdictClass


@dataclass(frozen=True, slots=True)
class OverTime:
    """All windows in order; at least one."""

    windows: tuple[JudgedWindow, ...]

    @property
    def classes(self) -> list[tuple[VerdictClass, int]]:
        """Verdict classes and the number of windows of each, most frequent first."""
        return Counter(window.verdict_class for window in self.windows).most_common()

    @property
    def changes(self) -> bool:
        """Whether windows differ in class."""
        return len(self.classes) > 1

    def as_data(self) -> dict[str, Any]:
        """The windows and their ranges as JSON data."""
        shares = [window.top_share for window in self.windows]
        floors = [window.best_possible for window in self.windows]
        return {
            "classes": {each.value: count for each, count in self.classes},
            "changes": self.changes,
            "top_share_least": min(shares),
            "top_share_most": max(shares),
            "best_possible_least": min(floors),
            "best_possible_most": max(floors),
            "windows": self.table().records(),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "OverTime":
        """The windows that `as_data` wrote."""
        return cls(
            tuple(
                JudgedWindow(
                    int(row["start"]),
                    int(row["rows"]),
                    str(row["top_key"]),
                    float(row["top_share"]),
                    float(row["imbalance"]),
                    float(row["best_possible"]),
                    VerdictClass(row["class"]),
                )
                for row in data["windows"]
            )
        )

    def table(self) -> Table:
        """One row per window."""
        columns = (
            Column("window", Kind.COUNT),
            start_column([each.start_us for each in self.windows]),
            *columns_named("rows top_share imbalance best_possible"),
            Column("class"),
            Column("top_key"),
        )
        return Table.from_rows(
            "Verdict over time", columns, [(at, *_row(each)) for at, each in enumerate(self.windows, start=1)], _NOTE
        )


NONE_LISTED = "(none)"
"""The hottest key of a window without a listed key."""

_NOTE = "Windows are judged separately; with few rows, some of the variation is noise."


def _row(window: JudgedWindow) -> Sequence[Any]:
    judged = window.top_share, window.imbalance, window.best_possible
    return (
        window.start_us,
        window.rows,
        *judged,
        window.verdict_class.value,
        window.top_key if window.top_share else NONE_LISTED,
    )
