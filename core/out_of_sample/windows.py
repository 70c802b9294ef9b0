"""Loads and counted keys in consecutive windows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.frontier.today import Today
from adapt.core.partitioning.measures.floors import best_possible
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.split_map import SplitMap
from adapt.core.stream import KeyType
from adapt.core.table import Column, Kind

MOST_PANES = 12
"""Most windows of a stream."""

ROWS_A_PANE = 500
"""Fewest rows of a window, so that noise does not look like change."""


MOST_NUMBERS = 1_000_000_000
"""Numbers of windows are below this; the times of a stream, in microseconds since 1970, reach it."""


@dataclass(frozen=True, slots=True)
class CountedPane:
    """A window and its counted keys."""

    start_us: int  # time of its first row, in microseconds since 1970, or its number
    frequencies: Frequencies


RoutedLoads: TypeAlias = Callable[[Plan], Floats | None]
"""Load of each channel in each window of a stream, for a placement; shape (channels, windows)."""


@dataclass(frozen=True, slots=True)
class CountedPanes:
    """The windows of a stream."""

    panes: tuple[CountedPane, ...] = ()  # in order; empty for counts without times
    # routes every row of the windows, as needed where they do not list every key; None if rows are gone
    routed: RoutedLoads | None = None


def is_numbered(starts_us: Sequence[int]) -> bool:
    """Whether windows have numbers in place of times."""
    return bool(starts_us) and starts_us[0] >= 0 and starts_us[-1] < MOST_NUMBERS


def start_column(starts_us: Sequence[int]) -> Column:
    """The column of the starts of windows."""
    if is_numbered(starts_us):
        return Column("start", Kind.COUNT, about="number of the window")
    return Column("start", Kind.TIME, about="time of the window's first row")


def rows_a_pane(rows: int) -> int | None:
    """Rows of each window; None if the stream is too short."""
    panes = min(MOST_PANES, rows // ROWS_A_PANE)
    return -(-rows // panes) if panes > 1 else None


@dataclass(frozen=True, slots=True)
class Windows:
    """Loads of a stream in consecutive windows, as placed today."""

    starts_us: tuple[int, ...]  # time of the first row of each window, in microseconds since 1970
    rows: tuple[int, ...]
    keys: pa.Array  # all keys listed in some window, distinct; shape (keys,)
    shares: Floats  # share of each key in the load of each window; shape (keys, windows)
    home: Channels  # channel of each key today; shape (keys,)
    loads: Floats  # share of each channel in the load of each window, as placed today; shape (channels, windows)
    capacities: Floats  # of each channel; shape (channels,)
    floors: Floats  # best possible imbalance of each window with whole keys; shape (windows,)

    def __len__(self) -> int:
        return len(self.starts_us)

    @classmethod
    def from_panes(
        cls,
        panes: Sequence[CountedPane],
        today: Partitioner,
        capacities: Floats | None = None,
        loads: Floats | None = None,
    ) -> "Windows":
        """The loads of counted windows, each with some load.

        Args:
            loads: Load of each channel in each window, as placed today; shape (channels, windows). Without them, load
                on keys that a lossy counter did not list is spread over the channels by capacity.
        """
        each = np.ones(today.channels) if capacities is None else capacities
        keys, shares = _shares(panes)
        home = today.channels_of(keys)
        counts = [pane.frequencies for pane in panes]
        falling = [np.sort(of.count_low[: of.real])[::-1] for of in counts]
        floors = [
            best_possible(heavy, of.total, len(each), capacities) or 1.0
            for heavy, of in zip(falling, counts, strict=True)
        ]
        return cls(
            tuple(pane.start_us for pane in panes),
            tuple(pane.frequencies.rows for pane in panes),
            keys,
            shares,
            home,
            loads_of(home, shares, each) if loads is None else loads / loads.sum(axis=0),
            each,
            np.array(floors),
        )

    def imbalances(self, loads: Floats) -> Floats:
        """Imbalance of channel loads by window; shape (windows,)."""
        return np.asarray((loads / self.capacities[:, None]).max(axis=0) * self.capacities.sum())


def loads_of(placed: Channels, shares: Floats, capacities: Floats) -> Floats:
    """Share of each channel in each window; shape (channels, windows)."""
    channels, windows = len(capacities), shares.shape[1]
    loads = np.empty((channels, windows))
    for at in range(windows):
        loads[:, at] = np.bincount(placed, shares[:, at], channels)
    unlisted = np.maximum(1 - shares.sum(axis=0), 0.0)
    return np.asarray(loads + np.outer(capacities / capacities.sum(), unlisted))


def _shares(panes: Sequence[CountedPane]) -> tuple[pa.Array, Floats]:
    """The distinct keys of all windows, and their shares."""
    chunks = [pane.frequencies.keys[: pane.frequencies.real] for pane in panes]
    encoded = pa.chunked_array(chunks).combine_chunks().dictionary_encode(null_encoding="encode")
    codes, keys = encoded.indices.to_numpy(), encoded.dictionary
    shares = np.zeros((len(keys), len(panes)))
    first = 0
    for at, pane in enumerate(panes):
        end = first + pane.frequencies.real
        shares[codes[first:end], at] = pane.frequencies.count_low[: end - first] / pane.frequencies.total
        first = end
    return keys, shares


@dataclass(frozen=True, slots=True)
class Whole:
    """All keys of a stream as placed today."""

    keys: pa.Array  # the first keys, those that may be pinned; shape (listed,)
    loads: Floats  # of each key; shape (keys,)
    state: Floats  # of each key; shape (keys,)
    home: Channels  # channel of each key today; shape (keys,)
    capacities: Floats  # of each channel; shape (channels,)
    key_type: KeyType = KeyType.STRING  # of the keys in their source

    def hottest(self, most: int) -> NDArray[np.int64]:
        """Rows of the hottest keys with load, by row."""
        loads = self.loads[: len(self.keys)]
        order = np.argsort(-loads, kind="stable")[:most]
        return np.sort(order[loads[order] > 0])

    def today(self, rows: NDArray[np.int64]) -> Today:
        """What is known of some keys; all others stay where they are."""
        stays = np.ones(len(self.loads), np.bool_)
        stays[rows] = False
        residual = np.bincount(self.home[stays], self.loads[stays], len(self.capacities)).astype(np.float64)
        own = self.loads[rows], self.state[rows], self.home[rows]
        return Today(*own, residual, self.capacities, float(self.state[stays].sum()))

    def pins(self, rows: NDArray[np.int64], placed: Channels) -> ExplicitMap:
        """The keys of some rows that are away from home."""
        is_moved = placed != self.home[rows]
        return ExplicitMap(self.keys.take(pa.array(rows[is_moved])), placed[is_moved])

    def placed(self, pins: ExplicitMap) -> Channels:
        """The channel of every key with these pins; shape (keys,)."""
        rows = pins.rows_of(self.keys)
        placed = self.home.copy()
        placed[: len(rows)] = np.where(rows >= 0, pins.channels[rows] if len(pins) else 0, placed[: len(rows)])
        return placed

    def shares_of_state(self, keys: pa.Array) -> Floats:
        """Share of some keys in all state; shape (keys,)."""
        rows = pc.index_in(keys, value_set=self.keys).fill_null(-1).to_numpy()
        total = float(self.state.sum())
        return np.where(rows >= 0, self.state[rows], 0.0) / total if total and len(self.state) else np.zeros(len(keys))

    def effect(self, pins: ExplicitMap, splits: SplitMap | None = None) -> tuple[float, float]:
        """Share of state that leaves its channel, and the imbalance."""
        placed, total = self.placed(pins), float(self.state.sum())
        share = float(self.state[placed != self.home].sum()) / total if total else 0.0
        loads = np.bincount(placed, self.loads, len(self.capacities)).astype(np.float64)
        if splits:
            rows = pc.index_in(splits.column, value_set=self.keys).to_pylist()
            for row, channels in zip(rows, splits.values(), strict=True):
                loads[placed[row]] -= self.loads[row]
                loads[list(channels)] += self.loads[row] / len(channels)
        return share, max_over_mean(loads, self.capacities) or 1.0
