"""Hot keys with count intervals and their share over time."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import key_shown, kind_of
from adapt.core.counting.timeline import bars
from adapt.core.out_of_sample.windows import CountedPane
from adapt.core.phrases import counted
from adapt.core.stream import Weight
from adapt.core.table import Column, Displayed, Kind, Table

MOST_KEYS = 20
"""Number of hot keys that are kept, hottest first."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """A hot key."""

    key: str  # as displayed
    count_low: float  # count_low, count_high: bounds of its true count
    count_high: float
    share: float  # `count_low` over the total
    life_line: tuple[float, ...] = ()  # lower bound of its share of each window; empty without timestamps


@dataclass(frozen=True, slots=True, repr=False)
class HotKeys(Displayed):
    """Hot keys of a stream."""

    keys: tuple[HotKey, ...]  # hottest first
    weight: Weight
    complete_above: float  # every key with a higher count is listed
    listed: int
    starts_us: tuple[int, ...] = ()  # start of each window, in microseconds since 1970

    @classmethod
    def from_counts(
        cls, frequencies: Frequencies, panes: Sequence[CountedPane] = (), most: int = MOST_KEYS
    ) -> "HotKeys":
        """Hot keys of a counted stream, and their shares of its windows."""
        keys = frequencies.keys[:most]
        low, high = frequencies.count_low[:most], frequencies.count_high[:most]
        lines = [pane.frequencies.intervals(keys)[0] / (pane.frequencies.total or 1.0) for pane in panes]
        shares = np.array(lines).reshape(len(panes), len(keys)).T
        told = tuple(
            HotKey(
                key_shown(key),
                least.item(),
                greatest.item(),
                float(least) / frequencies.total if frequencies.total else 0.0,
                tuple(line.tolist()),
            )
            for key, least, greatest, line in zip(keys.to_pylist(), low, high, shares, strict=True)
        )
        starts = tuple(pane.start_us for pane in panes)
        return cls(told, frequencies.weight, frequencies.complete_above, len(frequencies.keys), starts)

    @property
    def complete(self) -> str:
        """Which keys are certainly listed, in words."""
        if self.complete_above == 0:
            return "Every key is listed."
        return f"Every key with a count above {self.complete_above:,.6g} is listed ({counted(self.listed, 'key')})."

    def table(self) -> Table:
        """One row per key, with bars of its share over time."""
        kind = kind_of(self.weight)
        columns = [
            Column("rank", Kind.COUNT),
            Column("key"),
            Column("count_low", kind, about="lower bound of its true count"),
            Column("count_high", kind, about="upper bound of its true count"),
            Column("share", Kind.SHARE, about="count_low over the total"),
        ]
        rows: list[list[Any]] = [
            [at, key.key, key.count_low, key.count_high, key.share] for at, key in enumerate(self.keys, start=1)
        ]
        note = self.complete
        if self.starts_us:
            columns.append(Column("life_line", about="its share in each window; the highest bar is its own peak"))
            rows = [[*row, bars(key.life_line)] for row, key in zip(rows, self.keys, strict=True)]
            note = f"{note} Bars: {len(self.starts_us)} windows with equal row counts, scaled to the key's peak."
        return Table.from_rows("Hot keys", columns, rows, note)

    def lines_table(self) -> Table:
        """One row per key and window, for charts."""
        start = Column("start", Kind.TIME, about="time of the window's first row")
        columns = (Column("key"), Column("window", Kind.COUNT), start, Column("share", Kind.SHARE))
        rows = [
            (key.key, at, start, share)
            for key in self.keys
            for at, (start, share) in enumerate(zip(self.starts_us, key.life_line, strict=True), start=1)
        ]
        return Table.from_rows("Share of hot keys over time", columns, rows)

    def displayed(self) -> list[Table]:
        """Table."""
        return [self.table()]

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        return asdict(self) | {"weight": self.weight.value}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "HotKeys":
        """The hot keys that `as_data` wrote."""
        keys = tuple(HotKey(**{**key, "life_line": tuple(key["life_line"])}) for key in data["keys"])
        return cls(
            keys, Weight(data["weight"]), data["complete_above"], data["listed"], tuple(map(int, data["starts_us"]))
        )
