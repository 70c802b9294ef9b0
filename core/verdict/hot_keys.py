"""Hot keys, and the keys that a plan moves."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import key_shown, kind_of
from adapt.core.counting.timeline import bars
from adapt.core.out_of_sample.windows import CountedPane, Whole, start_column
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.split_map import SplitMap
from adapt.core.phrases import counted, listed, percent
from adapt.core.stream import Weight
from adapt.core.table import Column, Displayed, Kind, Table
from adapt.core.values import EMPTY

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
        start = start_column(self.starts_us)
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


MOST_MOVED = 20
"""Number of keys that are kept, hottest first."""

_MOST_SAID = 2


@dataclass(frozen=True, slots=True)
class MovedKey:
    """A key that a plan pins or splits."""

    key: str  # as displayed
    home: int  # its worker today
    workers: tuple[int, ...]  # its workers then; several for a split key
    share: float  # its share of the load

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        return asdict(self) | {"workers": list(self.workers)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "MovedKey":
        """Read the data of `as_data`."""
        return cls(**{**data, "workers": tuple(data["workers"])})


def moved_keys(whole: Whole, pins: ExplicitMap, splits: SplitMap) -> tuple[MovedKey, ...]:
    """The hottest keys that a plan pins or splits."""
    found = []
    total = float(whole.loads.sum()) or 1.0
    for column, workers in (
        (pins.column, [(int(to),) for to in pins.channels]),
        (splits.column, list(splits.values())),
    ):
        rows = pc.index_in(column, value_set=whole.keys).to_pylist()
        for row, key, to in zip(rows, column.to_pylist(), workers, strict=True):
            if row is not None:
                found.append(MovedKey(key_shown(key), int(whole.home[row]), to, float(whole.loads[row]) / total))
    return tuple(sorted(found, key=lambda each: -each.share)[:MOST_MOVED])


def keys_said(keys: Sequence[MovedKey], number: int) -> str:
    """The hottest keys that a plan moves, in words.

    Args:
        number: How many it moves.
    """
    told = [
        f"{each.key or EMPTY} ({percent(each.share)}) from worker {each.home} to {listed([*map(str, each.workers)])}"
        for each in keys[:_MOST_SAID]
    ]
    more = f", and {number - len(told):,} more" if number > len(told) else ""
    return f" Keys: {'; '.join(told)}{more}." if told else ""


def keys_table(keys: Sequence[MovedKey], number: int, note: str = "") -> Table:
    """One row per key.

    Args:
        number: How many the plan moves.
    """
    columns = (Column("key"), Column("from", Kind.COUNT), Column("to"), Column("share", Kind.SHARE))
    rows = [(each.key or EMPTY, each.home, ", ".join(map(str, each.workers)), each.share) for each in keys]
    return Table.from_rows(f"Keys of the plan ({number:,})", columns, rows, note)
