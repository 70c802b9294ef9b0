"""Load of each channel before and after, busiest first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapt.core.arrays import Floats
from adapt.core.table import Column, Kind, Table


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """The load of each channel / mean load, before and after.

    A channel that exists only before or only after is None on the other side.
    """

    placed_before: str  # placed_before, placed_after: the partitioner before and after
    placed_after: str
    rows: tuple[tuple[int, float | None, float | None], ...]  # channel, before, after; busiest before first

    @classmethod
    def from_loads(cls, placed_before: str, before: Floats, placed_after: str, after: Floats) -> "BeforeAfter":
        """Two partitioners with the relative loads of their channels (`relative`); shapes (channels,)."""
        number = max(len(before), len(after))
        was, is_now = ([*loads.tolist(), *[None] * (number - len(loads))] for loads in (before, after))
        order = sorted(range(number), key=lambda channel: (-(was[channel] or is_now[channel] or 0.0), channel))
        return cls(placed_before, placed_after, tuple((at, was[at], is_now[at]) for at in order))

    def table(self) -> Table:
        """One row per channel, busiest before first."""
        columns = (
            Column("channel", Kind.COUNT),
            Column("before", Kind.RATIO, about=f"load / mean load with {self.placed_before}", bar=True),
            Column("after", Kind.RATIO, about=f"load / mean load with {self.placed_after}", bar=True),
        )
        note = f"Load / mean load: before with {self.placed_before}, after with {self.placed_after}."
        return Table.from_rows("Channels before and after", columns, self.rows, note)

    def as_data(self, most: int) -> dict[str, Any]:
        """The first `most` rows as JSON data."""
        return {
            "placed_before": self.placed_before,
            "placed_after": self.placed_after,
            "rows": [list(row) for row in self.rows[:most]],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "BeforeAfter":
        """Read the data of `as_data`."""
        rows = tuple((int(channel), before, after) for channel, before, after in data["rows"])
        return cls(data["placed_before"], data["placed_after"], rows)
