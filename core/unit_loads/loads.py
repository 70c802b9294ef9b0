"""Loads of units over time, and which units are hot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.engines.unit_owners import in_key_group_ranges
from adapt.core.errors import BadInput
from adapt.core.out_of_sample.windows import MOST_PANES
from adapt.core.partitioning.schemes.key_groups import groups_for
from adapt.core.table import Column, Kind, Table
from adapt.core.values import visible

_MOSTLY = 0.8
"""A unit is hot steadily if it is in this share of the windows."""

_AT_TIMES = 0.2
"""A unit that is not hot in total is named if it is in this share of the windows."""

_ALL_HASHES = 2**128
"""Hash keys of a Kinesis stream."""


@dataclass(frozen=True, slots=True)
class UnitLoads:
    """Load of each unit in each window."""

    units: tuple[str, ...]  # names, distinct
    starts_us: tuple[int, ...]  # start of each window, rising; microseconds since 1970
    loads: Floats  # in any unit of load, from 0; shape (units, windows)

    def __post_init__(self) -> None:
        wrong = np.argwhere(~(np.isfinite(self.loads) & (self.loads >= 0)))
        if self.loads.shape != (len(self.units), len(self.starts_us)):
            raise BadInput(
                f"loads must have a row for each of {len(self.units)} units and a column for each of"
                f" {len(self.starts_us)} windows (got {' by '.join(map(str, self.loads.shape))})"
            )
        if len(self.units) < 2 or len(set(self.units)) < len(self.units):
            raise BadInput(f"there must be at least 2 units with different names (got {len(set(self.units))})")
        if len(wrong):
            unit, window = wrong[0]
            raise BadInput(
                f"loads must be numbers from 0 (got {self.loads[unit, window]} for unit {visible(self.units[unit])} in"
                f" window {window}); drop or correct this value"
            )
        if not self.loads.any():
            raise BadInput("all loads are 0: there is nothing to balance; give windows with some load")

    @classmethod
    def from_rows(cls, times_us: Sequence[int], units: Sequence[str], amounts: Sequence[float]) -> "UnitLoads":
        """Loads of rows of a window, a unit and an amount.

        Amounts of the same window and unit add up; a unit without a row in a window has no load there. Units are in the
        order of their numbers, if all names end with one, else by name.

        Args:
            times_us: Start of the window of each row; microseconds since 1970.
        """
        if not len(times_us) == len(units) == len(amounts):
            raise BadInput(f"rows need three values each (got {len(times_us)}, {len(units)} and {len(amounts)})")
        names, starts = sorted(set(units), key=numbered), sorted(set(times_us))
        loads = np.zeros((len(names), len(starts)))
        row, column = ({each: at for at, each in enumerate(found)} for found in (names, starts))
        np.add.at(loads, ([row[each] for each in units], [column[each] for each in times_us]), amounts)
        return cls(tuple(names), tuple(starts), loads)

    @property
    def shares(self) -> Floats:
        """Share of each unit in all load; shape (units,)."""
        return np.asarray(self.loads.sum(axis=1) / self.loads.sum())

    @property
    def busiest(self) -> int:
        """The busiest unit; the first of several."""
        return int(self.shares.argmax())

    @property
    def imbalance(self) -> float:
        """Load of the busiest unit over the mean."""
        return float(self.shares.max() * len(self.units))

    @property
    def over_mean(self) -> Floats:
        """Load of each unit over the mean; shape (units, windows).

        0 in a window without load.
        """
        totals = self.loads.sum(axis=0)
        return np.asarray(self.loads * len(self.units) / np.where(totals > 0, totals, 1.0))


def few_windows(loads: Floats) -> Floats:
    """Share of each unit in at most `MOST_PANES` windows.

    Windows without load are dropped; neighbors are merged so that the loads of windows are nearly equal.
    """
    kept = loads[:, loads.sum(axis=0) > 0]
    before = np.concatenate(([0.0], np.cumsum(kept.sum(axis=0))[:-1]))
    equal = np.arange(MOST_PANES) / MOST_PANES * kept.sum()
    edges = np.unique(np.abs(before[:, None] - equal).argmin(axis=0))
    merged = np.add.reduceat(kept, edges, axis=1)
    return np.asarray(merged / merged.sum(axis=0))


def numbered(name: str) -> tuple[str, int, str]:
    """A key that sorts `shard-2` before `shard-10`."""
    text = name.rstrip("0123456789")
    digits = name[len(text) :]
    return (text, int(digits) if digits else -1, name)


def fair_shares(units: int, engine: Engine | None = None, max_parallelism: int | None = None) -> Floats:
    """Share of equal keys that each unit gets on average.

    Equal, but for Flink's subtasks, whose ranges of key groups differ by one, and shards of a list.

    Args:
        engine: What places the keys; None if not known.
        max_parallelism: Flink's number of key groups; None for its default.
    """
    groups = None if engine is None else definition_of(engine).key_groups
    if groups is not None:
        owners = in_key_group_ranges(groups_for(units, max_parallelism, groups.most), units)
        return np.asarray(np.bincount(owners, minlength=units) / len(owners))
    if engine is not None and len(engine.shards) == units:
        return np.diff([*(first / _ALL_HASHES for first in engine.shards), 1.0])
    return np.full(units, 1 / units)


@dataclass(frozen=True, slots=True)
class HotUnit:
    """A unit with more load than is tolerated."""

    unit: str
    share: float  # of all load
    over_mean: float  # its load over the mean
    peak: float  # the same in its busiest window
    hot_windows: float  # share of the windows in which it is hot
    since_us: int | None  # start of the first window from which on it is hot in 80 %; None if it is not hot now
    pattern: str  # steady, since then, at times


def hot_units(loads: UnitLoads, limit: float) -> list[HotUnit]:
    """Units above the limit, busiest first.

    In total, or in a fifth of the windows.

    Args:
        limit: Tolerated load of a unit over the mean.
    """
    over, shares = loads.over_mean, loads.shares
    is_hot, found = over >= limit, []
    for unit in np.argsort(-shares, kind="stable"):
        windows = float(is_hot[unit].mean())
        total = float(shares[unit] * len(shares))
        if total < limit and windows < _AT_TIMES:
            continue
        from_here = np.cumsum(is_hot[unit][::-1])[::-1] / np.arange(len(is_hot[unit]), 0, -1)
        now = np.flatnonzero(is_hot[unit] & (from_here >= _MOSTLY))
        since = loads.starts_us[now[0]] if len(now) and is_hot[unit, -3:].any() else None
        pattern = "steady" if windows >= _MOSTLY else "at times" if since is None else "since then"
        peak = float(over[unit].max())
        found.append(HotUnit(loads.units[unit], float(shares[unit]), total, peak, windows, since, pattern))
    return found


def takes_turns(loads: UnitLoads, limit: float) -> bool:
    """Whether different units are the hot one in turn.

    Most windows are above the limit, and no unit is the busiest in half of them. Many windows are merged to twelve, so
    that noise does not look like turns.
    """
    shares = few_windows(loads.loads)
    over = shares * len(shares)
    hot = over.max(axis=0) >= limit
    busiest = np.bincount(over.argmax(axis=0)[hot], minlength=len(over))
    return bool(hot.mean() > 0.5 and busiest.max() < hot.sum() / 2)


def hot_table(found: Sequence[HotUnit]) -> Table:
    """Hot units as a table."""
    columns = (
        Column("unit"),
        Column("share", Kind.SHARE, about="of all load"),
        Column("over_mean", Kind.RATIO, about="load over the mean of all units"),
        Column("peak", Kind.RATIO, about="the same in its busiest window"),
        Column("hot_windows", Kind.SHARE, about="windows in which it is above the limit"),
        Column("since", Kind.TIME, about="from then on it is hot"),
        Column("pattern"),
    )
    rows = [(e.unit, e.share, e.over_mean, e.peak, e.hot_windows, e.since_us, e.pattern) for e in found]
    return Table.from_rows("Hot units", columns, rows)
