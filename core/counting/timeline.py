"""Frequencies over time: summaries per pane, windows, hot keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.lossy import LossySummary, merge_lossy
from adapt.core.counting.tables import key_shown
from adapt.core.errors import UsageError
from adapt.core.phrases import percent
from adapt.core.stream import KeyType, Weight
from adapt.core.table import Column, Kind, Table
from adapt.core.units.row_or_time_span import Length

MOST_PER_LENGTH = 24
"""The most panes per length; positions in microseconds then fit an int64."""


@dataclass(frozen=True, slots=True)
class Panes:
    """A grid of panes over row numbers or microseconds.

    Pane j begins at floor(j length / per_length). So any `per_length` consecutive panes are exactly one length,
    and pane sizes differ by at most one position.
    """

    length: Length  # the length of `per_length` panes
    per_length: int = 1  # panes per length, from 1 to `MOST_PER_LENGTH`

    def __post_init__(self) -> None:
        if not 1 <= self.per_length <= MOST_PER_LENGTH:
            raise UsageError(f"a window must have 1 to {MOST_PER_LENGTH} panes (got {self.per_length})")
        if self.length.size < self.per_length:
            raise UsageError(f"a length of {self.length} is too short for {self.per_length} panes")

    def numbers(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pane of each position; same shape."""
        return ((positions + 1) * self.per_length - 1) // self.length.size

    def start(self, number: int) -> int:
        """The first position of a pane."""
        return number * self.length.size // self.per_length


_BARS = " ▁▂▃▄▅▆▇█"
_MOST_BARS = 40


@dataclass(frozen=True, slots=True)
class Pane:
    """The rows of one pane."""

    number: int  # its index, counting empty panes; the first row is in pane 0
    first_us: int  # first_us, last_us: the times of its first and last row, in microseconds since 1970
    last_us: int
    summary: LossySummary


@dataclass(frozen=True, slots=True)
class LifeLine:
    """The share of one key per pane."""

    key: str | int | bytes | None
    share: float  # its share of the whole stream, at least
    shares: NDArray[np.float64]  # its share of each pane, at least; 0 in empty panes; shape (all panes,)
    hot: NDArray[np.bool_]  # whether its share may have reached the support in each pane; same shape

    @property
    def entered(self) -> int:
        """The first pane in which it was hot."""
        return int(np.argmax(self.hot))

    @property
    def left(self) -> int | None:
        """The pane after its last hot one; None if still hot."""
        last = len(self.hot) - 1 - int(np.argmax(self.hot[::-1]))
        return last + 1 if last + 1 < len(self.hot) else None

    @property
    def bars(self) -> str:
        """The shares as a line of bars, scaled to the peak."""
        runs = np.array_split(self.shares, min(len(self.shares), _MOST_BARS))
        return bars([float(run.max()) for run in runs])


def bars(heights: Sequence[float]) -> str:
    """Heights as bars, scaled to the highest; blank only for 0."""
    peak = max(heights, default=0.0) or 1.0
    return "".join(_BARS[int(np.ceil(height / peak * (len(_BARS) - 1)))] for height in heights)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The frequencies of a stream per pane."""

    grid: Panes
    origin_us: int  # the time of the first row
    panes: tuple[Pane, ...]  # the panes with rows, in order
    epsilon: float  # error bound of every pane, as a share of its total
    weight: Weight = Weight.COUNT
    key_type: KeyType | None = None

    def __post_init__(self) -> None:
        if not self.panes:
            raise UsageError("a timeline needs at least one pane")

    def __len__(self) -> int:
        """The number of panes, empty ones included."""
        return self.panes[-1].number + 1

    def start_us(self, number: int) -> int | None:
        """The start time of a pane, or its first row's time."""
        if not self.grid.length.in_rows:
            return self.origin_us + self.grid.start(number)
        return next((pane.first_us for pane in self.panes if pane.number == number), None)

    def whole(self) -> Frequencies:
        """The frequencies of all panes together."""
        return merge_lossy(pane.summary for pane in self.panes).frequencies(self.epsilon, self.weight, self.key_type)

    def windows(self, panes: int) -> Iterator[tuple[Pane, Frequencies]]:
        """The frequencies of every window of `panes` panes.

        With the panes of a `SlidingWindow` and `panes` = x, this is the counter in use at the end of each pane.
        """
        for last in self.panes:
            yield last, self._window(last, panes)

    def last_window(self, panes: int) -> Frequencies:
        """The frequencies of the last `panes` panes."""
        return self._window(self.panes[-1], panes)

    def _window(self, last: Pane, panes: int) -> Frequencies:
        held = [pane.summary for pane in self.panes if last.number - panes < pane.number <= last.number]
        return merge_lossy(held).frequencies(self.epsilon, self.weight, self.key_type)

    def life_lines(self, support: float, most: int) -> list[LifeLine]:
        """Keys that may have reached `support` in a pane, heaviest first.

        Weight decides, not share: in a pane of three rows every key has a large share.

        Args:
            support: A share in (epsilon, 1).
        """
        whole = self.whole()
        hot_in = [pane.summary.keys.filter(pa.array(_reaches(pane.summary, support))) for pane in self.panes]
        keys = pc.unique(pa.concat_arrays(hot_in))
        weights = np.zeros((len(keys), len(self)))
        shares = np.zeros((len(keys), len(self)))
        hot = np.zeros((len(keys), len(self)), np.bool_)
        for pane in self.panes:
            places = pc.index_in(keys, value_set=pane.summary.keys)
            listed = places.is_valid().to_numpy(zero_copy_only=False)
            rows = places.drop_null().to_numpy()
            weights[listed, pane.number] = pane.summary.counts[rows]
            shares[listed, pane.number] = pane.summary.counts[rows] / max(pane.summary.total, 1e-300)
            hot[listed, pane.number] = _reaches(pane.summary, support)[rows]
        in_whole = pc.index_in(keys, value_set=whole.keys).to_pylist()
        overall = [0.0 if at is None else float(whole.count_low[at]) / whole.total for at in in_whole]
        order = sorted(range(len(keys)), key=lambda at: (-float(weights[at].max()), -overall[at], at))[:most]
        return [LifeLine(keys[at].as_py(), overall[at], shares[at], hot[at]) for at in order]


def life_lines_table(timeline: Timeline, support: float, most: int = 20) -> Table:
    """Hot keys with their shares over time."""
    columns = (
        Column("key"),
        Column("share", Kind.SHARE, about="of the whole stream, at least"),
        Column("peak_share", Kind.SHARE, about="in its hottest step, at least"),
        Column("peak", Kind.TIME, about="start of that step"),
        Column("entered", Kind.TIME, about="start of its first hot step"),
        Column("left", Kind.TIME, about="end of its last hot step; empty: still hot"),
        Column("hot_steps", Kind.COUNT, about="steps in which it is hot"),
        Column("life_line", about="its share per step, scaled to its peak"),
    )
    lines = timeline.life_lines(support, most)
    rows = [
        (
            key_shown(line.key),
            line.share,
            float(line.shares.max()),
            timeline.start_us(int(np.argmax(line.shares))),
            timeline.start_us(line.entered),
            None if line.left is None else timeline.start_us(line.left),
            int(line.hot.sum()),
            line.bars,
        )
        for line in lines
    ]
    steps = f"{len(timeline):,} steps of {timeline.grid.length}"
    note = f"{steps}; hot: at least {percent(support)} of a step, within an error of {timeline.epsilon:.1e}"
    return Table.from_rows("Hot keys over time", columns, rows, note)


def _reaches(summary: LossySummary, support: float) -> NDArray[np.bool_]:
    """Which listed keys may have a share of at least `support`; shape (keys,)."""
    high: NDArray[np.float64] = (summary.counts + summary.errors).astype(np.float64)
    return high / max(summary.total, 1e-300) >= support  # rounded as displayed: 7 of 100 reach 0.07
