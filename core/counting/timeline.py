"""Frequencies over time: one summary a pane, windows put together from panes, and the life-lines of hot keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.frequencies import Frequencies, check_support
from adapt.core.counting.lossy import LossySummary, merge_lossy
from adapt.core.counting.panes import Panes
from adapt.core.counting.tables import key_shown
from adapt.core.errors import UsageError
from adapt.core.stream import Weight
from adapt.core.table import Column, Kind, Table

_BARS = " ▁▂▃▄▅▆▇█"
_MOST_BARS = 40


@dataclass(frozen=True, slots=True)
class Pane:
    """The rows of one pane.

    Attributes:
        number: Its place among all panes, empty ones included; the first row is in pane 0.
        first_us, last_us: The times of its first and last row, in microseconds since 1970.
    """

    number: int
    first_us: int
    last_us: int
    summary: LossySummary


@dataclass(frozen=True, slots=True)
class LifeLine:
    """How hot one key was, pane by pane.

    Attributes:
        share: Of the whole stream, at least.
        shares: Of each pane, at least, and 0 in panes without rows; shape (panes from the first to the last,).
        hot: In which panes its share may have reached the support; same shape.
    """

    key: str | int | bytes | None
    share: float
    shares: NDArray[np.float64]
    hot: NDArray[np.bool_]

    @property
    def entered(self) -> int:
        """The first pane in which it was hot."""
        return int(np.argmax(self.hot))

    @property
    def left(self) -> int | None:
        """The first pane after which it was hot no more; None if it still was in the last."""
        last = len(self.hot) - 1 - int(np.argmax(self.hot[::-1]))
        return last + 1 if last + 1 < len(self.hot) else None

    @property
    def bars(self) -> str:
        """The shares as a line of bars, the highest as high as its own peak; runs of panes by their highest."""
        runs = np.array_split(self.shares, min(len(self.shares), _MOST_BARS))
        return bars([float(run.max()) for run in runs])


def bars(heights: Sequence[float]) -> str:
    """Heights as a line of bars, the highest as high as the line; nothing is drawn only where a height is 0."""
    peak = max(heights, default=0.0) or 1.0
    return "".join(_BARS[int(np.ceil(height / peak * (len(_BARS) - 1)))] for height in heights)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The frequencies of a stream, pane by pane.

    Attributes:
        origin_us: The time of the first row.
        panes: Those with rows, in order.
        epsilon: Error bound of every pane, as a share of its total.

    Raises:
        UsageError: there are no panes.
    """

    grid: Panes
    origin_us: int
    panes: tuple[Pane, ...]
    epsilon: float
    weight: Weight = Weight.COUNT

    def __post_init__(self) -> None:
        if not self.panes:
            raise UsageError("a timeline needs at least one pane")

    def __len__(self) -> int:
        """How many panes there are from the first to the last, empty ones included."""
        return self.panes[-1].number + 1

    def start_us(self, number: int) -> int | None:
        """When a pane begins; of panes of rows, the time of the first row, and None if it has none."""
        if not self.grid.length.in_rows:
            return self.origin_us + self.grid.start(number)
        return next((pane.first_us for pane in self.panes if pane.number == number), None)

    def whole(self) -> Frequencies:
        """The frequencies of all panes together."""
        return merge_lossy(pane.summary for pane in self.panes).frequencies(self.epsilon, self.weight)

    def windows(self, panes: int) -> Iterator[tuple[Pane, Frequencies]]:
        """At the end of every pane, the frequencies of it and the `panes` - 1 before it.

        With the panes of a `SlidingWindow` and `panes` = x, this is what its counter in use holds at the end of each.
        """
        for last in self.panes:
            yield last, self._window(last, panes)

    def last_window(self, panes: int) -> Frequencies:
        """The frequencies of the last `panes` panes."""
        return self._window(self.panes[-1], panes)

    def _window(self, last: Pane, panes: int) -> Frequencies:
        held = [pane.summary for pane in self.panes if last.number - panes < pane.number <= last.number]
        return merge_lossy(held).frequencies(self.epsilon, self.weight)

    def life_lines(self, support: float, most: int) -> list[LifeLine]:
        """The keys that may have reached a share of `support` in some pane, by what they weighed in their heaviest one.

        The weight decides, not the share: in a pane of three rows every key has a large share.

        Args:
            support: A share in (epsilon, 1).

        Raises:
            UsageError: the panes cannot tell such a share from their error.
        """
        check_support(support, self.epsilon)
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
    """Each hot key with its shares over time, and when it entered and left."""
    columns = (
        Column("key"),
        Column("share", Kind.SHARE, about="of the whole stream, at least"),
        Column("peak_share", Kind.SHARE, about="of its best pane, at least"),
        Column("peak", Kind.TIME, about="when that pane begins"),
        Column("entered", Kind.TIME, about="begin of the first pane in which it may have reached the support"),
        Column("left", Kind.TIME, about="begin of the first pane after the last such; none, it is hot still"),
        Column("hot_panes", Kind.COUNT, about="panes in which it may have reached the support"),
        Column("life_line", about="its share pane by pane, the highest bar its own peak"),
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
    panes = f"{len(timeline):,} panes of {timeline.grid.length}"
    note = (
        f"{panes}; a key is hot where it may have {support:.3%} of a pane or more, give or take {timeline.epsilon:.1e}"
    )
    return Table.from_rows("Hot keys over time", columns, rows, note)


def _reaches(summary: LossySummary, support: float) -> NDArray[np.bool_]:
    """Which listed keys have a share of at least `support`, or may have; shape (keys,)."""
    high: NDArray[np.float64] = (summary.counts + summary.errors).astype(np.float64)
    return high / max(summary.total, 1e-300) >= support  # as its share is shown: 7 of 100 reach 0.07
