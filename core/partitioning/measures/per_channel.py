"""Load of each channel before and after, busiest first."""

from collections.abc import Mapping, Sequence
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
    # worker, load before and after, and what of both is on hot keys, if that is known; busiest before first
    rows: tuple[tuple[float | None, ...], ...]

    @classmethod
    def from_loads(
        cls, placed_before: str, before: Floats, placed_after: str, after: Floats, hot: Sequence[Floats] = ()
    ) -> "BeforeAfter":
        """Two partitioners with the relative loads of their channels (`relative`); shapes (channels,).

        Args:
            hot: The part of both loads that is on hot keys.
        """
        number = max(len(before), len(after))
        columns = [[*loads.tolist(), *[None] * (number - len(loads))] for loads in (before, after, *hot)]
        was, is_now = columns[:2]
        order = sorted(range(number), key=lambda channel: (-(was[channel] or is_now[channel] or 0.0), channel))
        return cls(placed_before, placed_after, tuple((at, *(column[at] for column in columns)) for at in order))

    def table(self) -> Table:
        """One row per channel, busiest before first."""
        columns = (
            Column("worker", Kind.COUNT),
            Column("before", Kind.RATIO, about=f"load / mean load with {self.placed_before}", bar=True),
            Column("after", Kind.RATIO, about=f"load / mean load with {self.placed_after}", bar=True),
        )
        note = f"Load / mean load: before with {self.placed_before}, after with {self.placed_after}."
        return Table.from_rows("Workers before and after", columns, [row[:3] for row in self.rows], note)

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
        rows = tuple((int(channel), *loads) for channel, *loads in data["rows"])
        return cls(data["placed_before"], data["placed_after"], rows)
