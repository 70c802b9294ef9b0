"""How skew varies over time: the stream in stretches of as many rows each, every one judged by itself."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapt.core.counting.frequencies import Frequencies
from adapt.core.table import Column, Kind, Table
from adapt.core.verdict.verdict_class import Cure

MOST_PANES = 24
"""A stream is cut into so many panes at most."""

ROWS_A_PANE = 1000
"""A pane has this many rows or more, so that chance does not pass for change."""


def rows_a_pane(rows: int) -> int | None:
    """Rows of each pane of a stream; None where it is too short to be cut in two."""
    panes = min(MOST_PANES, rows // ROWS_A_PANE)
    return -(-rows // panes) if panes > 1 else None


@dataclass(frozen=True, slots=True)
class CountedPane:
    """One pane and its keys.

    Attributes:
        start_us: The time of its first row, in microseconds since 1970.
    """

    start_us: int
    frequencies: Frequencies


@dataclass(frozen=True, slots=True)
class JudgedPane:
    """One pane and its skew.

    Attributes:
        start_us: The time of its first row, in microseconds since 1970.
        top_key: The heaviest key as it is shown.
        top_share: Its share of the load.
        imbalance: The fullest channel over the average, keys placed as today.
        imbalance_floor: No placement of whole keys has less.
    """

    start_us: int
    rows: int
    top_key: str
    top_share: float
    imbalance: float
    imbalance_floor: float
    cure: Cure


@dataclass(frozen=True, slots=True)
class OverTime:
    """All panes, in order; at least one."""

    panes: tuple[JudgedPane, ...]

    @property
    def classes(self) -> list[tuple[Cure, int]]:
        """The classes of panes and how many have each, most first."""
        return Counter(pane.cure for pane in self.panes).most_common()

    @property
    def changes(self) -> bool:
        """Whether not all panes are of one class."""
        return len(self.classes) > 1

    def as_data(self) -> dict[str, Any]:
        """The panes as JSON data, and what they range over."""
        shares = [pane.top_share for pane in self.panes]
        floors = [pane.imbalance_floor for pane in self.panes]
        return {
            "classes": {cure.value: count for cure, count in self.classes},
            "changes": self.changes,
            "top_share_least": min(shares),
            "top_share_most": max(shares),
            "imbalance_floor_least": min(floors),
            "imbalance_floor_most": max(floors),
            "panes": self.table().records(),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "OverTime":
        """What `as_data` told."""
        return cls(
            tuple(
                JudgedPane(
                    int(row["start"]),
                    int(row["rows"]),
                    str(row["top_key"]),
                    float(row["top_share"]),
                    float(row["imbalance"]),
                    float(row["imbalance_floor"]),
                    Cure(row["class"]),
                )
                for row in data["panes"]
            )
        )

    def table(self) -> Table:
        """One row a pane."""
        columns = (
            Column("pane", Kind.COUNT),
            Column("start", Kind.TIME, about="time of the first row of the pane"),
            Column("rows", Kind.COUNT),
            Column("top_share", Kind.SHARE, about="of the heaviest key of the pane"),
            Column("imbalance", Kind.RATIO, about="fullest channel over the average, as placed today"),
            Column("imbalance_floor", Kind.RATIO, about="the least of any placement of whole keys"),
            Column("class"),
            Column("top_key"),
        )
        return Table.from_rows(
            "Verdict over time", columns, [(at, *_row(pane)) for at, pane in enumerate(self.panes, start=1)], _NOTE
        )


_NOTE = "Each pane is judged by itself; of few rows, by chance too."


def _row(pane: JudgedPane) -> Sequence[Any]:
    judged = pane.top_share, pane.imbalance, pane.imbalance_floor
    return (pane.start_us, pane.rows, *judged, pane.cure.value, pane.top_key)
