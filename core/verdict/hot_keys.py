"""The heaviest keys: each within its interval, above what share none is missing, and how hot each was over time."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import key_shown, kind_of
from adapt.core.counting.timeline import bars
from adapt.core.stream import Weight
from adapt.core.table import Column, Kind, Table
from adapt.core.verdict.skew_over_time import CountedPane

MOST_KEYS = 20
"""Keys that are told of, the heaviest first."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """One of the heaviest keys.

    Attributes:
        key: As it is shown.
        count_low, count_high: It weighs no less and no more.
        share: `count_low` over the total.
        life_line: Its share of each pane, at least; empty where no times are known.
    """

    key: str
    count_low: float
    count_high: float
    share: float
    life_line: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class HotKeys:
    """The heaviest keys of a stream.

    Attributes:
        keys: Heaviest first.
        complete_above: Every key that weighs more than this is listed.
        listed: How many keys are.
        starts_us: Where each pane begins, in microseconds since 1970.
    """

    keys: tuple[HotKey, ...]
    weight: Weight
    complete_above: float
    listed: int
    starts_us: tuple[int, ...] = ()

    @classmethod
    def from_counts(
        cls, frequencies: Frequencies, panes: Sequence[CountedPane] = (), most: int = MOST_KEYS
    ) -> "HotKeys":
        """The heaviest keys of a counted stream, and their shares of its panes."""
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
        """Which keys are sure to be listed, in words."""
        if self.complete_above == 0:
            return "Every key is listed."
        return f"Every key above {self.complete_above:,.6g} is listed, {self.listed:,} keys in all."

    def table(self) -> Table:
        """One row a key, with its life-line as bars if times are known."""
        kind = kind_of(self.weight)
        columns = [
            Column("rank", Kind.COUNT),
            Column("key"),
            Column("count_low", kind, about="it weighs no less"),
            Column("count_high", kind, about="it weighs no more"),
            Column("share", Kind.SHARE, about="count_low over the total"),
        ]
        rows: list[list[Any]] = [
            [at, key.key, key.count_low, key.count_high, key.share] for at, key in enumerate(self.keys, start=1)
        ]
        note = self.complete
        if self.starts_us:
            columns.append(Column("life_line", about="its share pane by pane, the highest bar its own peak"))
            rows = [[*row, bars(key.life_line)] for row, key in zip(rows, self.keys, strict=True)]
            note = f"{note} A bar is one of {len(self.starts_us)} panes of as many rows; a key's highest is its peak."
        return Table.from_rows("Hot keys", columns, rows, note)

    def lines_table(self) -> Table:
        """One row a key and pane, for charts."""
        start = Column("start", Kind.TIME, about="time of the first row of the pane")
        columns = (Column("key"), Column("pane", Kind.COUNT), start, Column("share", Kind.SHARE))
        rows = [
            (key.key, at, start, share)
            for key in self.keys
            for at, (start, share) in enumerate(zip(self.starts_us, key.life_line, strict=True), start=1)
        ]
        return Table.from_rows("Life-lines", columns, rows)

    def _repr_html_(self) -> str:
        """The keys, for a notebook."""
        return self.table()._repr_html_()

    def as_data(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self) | {"weight": self.weight.value}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "HotKeys":
        """What `as_data` told.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        keys = tuple(HotKey(**{**key, "life_line": tuple(key["life_line"])}) for key in data["keys"])
        return cls(
            keys, Weight(data["weight"]), data["complete_above"], data["listed"], tuple(map(int, data["starts_us"]))
        )
