"""Window Drop on one arc at one share: what `LivingWindows` and the curve of kept tuples are held against."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import BATCH
from adapt.core.fit.network.network import Window
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.running.window_drop import needed_for, windows_at
from adapt.core.random_bits import substream, uniforms


@dataclass(frozen=True, slots=True)
class WindowDrop:
    """Which tuples of an arc are kept and which windows of the aggregates behind it may begin.

    Positions are those of the tuples before any drop: microseconds since the windows were counted from, or numbers of
    tuples. Windows are numbered from 0, the one that begins at position 0.

    A tuple is kept if a window lives that it is needed for. The aggregates behind the arc open only windows that live,
    or are needed for one that does, and so never one that lacks a tuple.

    Attributes:
        windows: Of the aggregates behind the arc, nearest first; at least one.
        keep: The share of the windows of the last one that live, in [0, 1].
        seed: Of all coins.
        arc: The arc's number.
        batch: Consecutive windows that live or die together.

    Source: FIT, sections 2 and 7; Tatbul and Zdonik, Window-aware load shedding for aggregation queries over data
    streams, VLDB 2006.
    """

    windows: tuple[Window, ...]
    keep: float
    seed: int
    arc: int
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UsageError(f"windows cannot live or die by {self.batch}; give a batch of 1 or more")

    def keeps(self, positions: Indices) -> NDArray[np.bool_]:
        """Whether the tuples at these positions, from 0 up, are kept; of their shape."""
        if not len(positions):
            return np.empty(0, np.bool_)
        needed = needed_for(self.windows)
        batches = windows_at(needed, np.array([positions.max()]))[1][0] // self.batch + 1
        alive = uniforms(substream(self.seed, self.arc), np.arange(batches)) < self.keep
        return in_live_windows(needed, self.batch, alive, positions)

    def opens(self, level: int, numbers: Indices) -> NDArray[np.bool_]:
        """Whether the windows of these numbers may begin at the aggregate of a level, 0 the nearest; of their shape."""
        if level == len(self.windows) - 1:
            return np.asarray(uniforms(substream(self.seed, self.arc), numbers // self.batch) < self.keep)
        window = self.windows[level]
        # A result of a timed window has the time at which that began.
        results = numbers * window.slide if window.timed else numbers
        return replace(self, windows=self.windows[level + 1 :]).keeps(results)


def in_live_windows(window: Window, batch: int, alive: NDArray[np.bool_], positions: Indices) -> NDArray[np.bool_]:
    """Whether any window at each position is in a batch that lives.

    Args:
        window: Size and slide.
        batch: Windows in a batch.
        alive: Whether each batch lives, from the first to that of the last position; shape (batches,).
        positions: From 0 up.
    """
    first, last = windows_at(window, positions)
    so_far = np.concatenate(([0], np.cumsum(alive)))
    return np.asarray(so_far[last // batch + 1] > so_far[first // batch])
