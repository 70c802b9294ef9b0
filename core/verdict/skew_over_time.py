"""Skew over time: the verdict on each of several equal-sized windows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    imbalance_floor: float  # best possible imbalance with whole keys
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
        floors = [window.imbalance_floor for window in self.windows]
        return {
            "classes": {each.value: count for each, count in self.classes},
            "changes": self.changes,
            "top_share_least": min(shares),
            "top_share_most": max(shares),
            "imbalance_floor_least": min(floors),
            "imbalance_floor_most": max(floors),
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
                    float(row["imbalance_floor"]),
                    VerdictClass(row["class"]),
                )
                for row in data["windows"]
            )
        )

    def table(self) -> Table:
        """One row per window."""
        columns = (
            Column("window", Kind.COUNT),
            Column("start", Kind.TIME, about="time of the window's first row"),
            Column("rows", Kind.COUNT),
            Column("top_share", Kind.SHARE, about="share of the window's hottest key"),
            Column("imbalance", Kind.RATIO, about="busiest worker over the mean load, as placed today"),
            Column("imbalance_floor", Kind.RATIO, about="best possible imbalance without splitting keys"),
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
    judged = window.top_share, window.imbalance, window.imbalance_floor
    return (
        window.start_us,
        window.rows,
        *judged,
        window.verdict_class.value,
        window.top_key if window.top_share else NONE_LISTED,
    )
