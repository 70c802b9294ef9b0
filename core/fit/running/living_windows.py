"""Window Drop in a running network: which windows are kept."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.network.names import BATCH, OperatorKind
from adapt.core.fit.network.network import Operator, Window
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.running.window_drop import (
    aggregates,
    decided_together,
    needed_for,
    shares_through,
    windows_at,
    windows_behind,
)
from adapt.core.random_bits import substream, uniforms

MAX_WINDOWS = 50_000_000
"""Limit of windows per aggregate; more do not fit in memory."""


def windows_of_arcs(wiring: Wiring) -> tuple[tuple[Window, ...], ...]:
    """Windows of the aggregates downstream of each arc, nearest first.

    The windows of the last of them are kept or dropped whole. Empty for arcs where random tuples are dropped.
    """
    behind = windows_behind(wiring)
    for arc, windows in enumerate(behind):
        if not windows:
            continue
        needed_for(windows)
        operator = wiring.network.sources[wiring.target[arc]]
        assert isinstance(operator, Operator)
        if operator.kind is OperatorKind.JOIN:
            raise UsageError(
                f"operator {operator.name!r} joins streams before an aggregate; its windows count tuples, which drops"
                " would shift; use --network drops=random"
            )
        if windows[0].timed:
            continue
        if len(operator.inputs) > 1:
            raise UsageError(
                f"operator {operator.name!r} merges streams before a count window, so no tuple's position in it is"
                " known before; give the window durations or use --network drops=random"
            )
        nested = aggregates(wiring, arc) and len(windows) > 1
        if (nested or not aggregates(wiring, arc)) and operator.selectivity != (1 / windows[0].slide if nested else 1):
            raise UsageError(
                f"operator {operator.name!r} emits {operator.selectivity:g} tuples for one before a count window, so"
                " drops would shift that; give the window durations or use --network drops=random"
            )
    return behind


class LivingWindows:
    """Decides for each window, when it starts, whether it is kept.

    The decision follows the share that the arc keeps at that time, and applies to windows of the last aggregate
    downstream of the arc; a kept window needs results of the aggregates before it, and these need tuples. Later plans
    do not change a window's fate. The windows of one batch share a random draw, on all arcs that operators connect: a
    window kept on an arc is kept on all before it, and of streams that merge, on the one that keeps fewest. A tuple is
    kept on an arc if a kept window needs it there. For each tuple, the last aggregate emits its usual output times the
    share of the tuple's windows that are kept; an aggregate before others opens the windows that these need, and its
    result takes the position at which its window starts. None of these windows has lost a tuple. Where an operator
    before an aggregate emits a fraction of a tuple per tuple, drops shift which tuples it emits, by less than one
    tuple. A window that loses a tuple to a full queue is withdrawn; see `withdrawal`.

    The position of a tuple is the time of its row, or its number on the arc from its input, before drops, where windows
    count tuples; a result of such a window has the window's number.

    Attributes:
        behind: Windows of the aggregates downstream of each arc, nearest first.
        windows: The window that a kept result needs on each arc, in positions on that arc; None without one.
        own: For arcs to aggregates, their window; else None.
        nested: Whether an arc leads to an aggregate with further aggregates downstream; shape (arcs,).
        numbered: Whether a tuple's position is its number on the arc; shape (arcs,).
        fate: The row of `lived` for windows kept on the arc and all before it, -1 without one. Shape (arcs,).
        given: For arcs to aggregates, the row for their own windows that are opened; else -1.
        lived: Number of kept windows before each window number; shape (rows, numbers).
        begun: Number of windows decided, shape (rows,).
        tally: Results emitted for each window by the aggregate whose windows the row has; shape (rows or 0, numbers).
        batch: Consecutive windows kept or dropped together.
    """

    def __init__(self, wiring: Wiring, seed: int, batch: int = BATCH, tallies: bool = False) -> None:
        """A network in which no window has started.

        Args:
            tallies: Whether results are counted by window, so that they can be withdrawn.
        """
        self._wiring, self.behind = wiring, (behind := windows_of_arcs(wiring))
        self.windows = tuple(needed_for(windows) if windows else None for windows in behind)
        to_aggregate = [bool(windows) and aggregates(wiring, arc) for arc, windows in enumerate(behind)]
        self.own = tuple(windows[0] if inner else None for windows, inner in zip(behind, to_aggregate, strict=True))
        self.nested = np.array(
            [inner and len(windows) > 1 for windows, inner in zip(behind, to_aggregate, strict=True)]
        )
        counts = np.array([bool(windows) and not windows[0].timed for windows in behind])
        self.numbered = counts & (wiring.source < wiring.inputs)
        self.batch = batch
        self._arcs = arcs = [arc for arc, window in enumerate(self.windows) if window is not None]
        nested = np.flatnonzero(self.nested).tolist()
        self.fate, self.given = np.full(len(self.windows), -1), np.full(len(self.windows), -1)
        self.fate[arcs] = np.arange(len(arcs))
        self.given[to_aggregate] = self.fate[to_aggregate]
        self.given[nested] = len(arcs) + np.arange(len(nested))
        self._further = {arc: needed_for(behind[arc][1:]) for arc in nested}
        """What a kept window needs of an aggregate's results."""
        first = {arc: group[0] for group in decided_together(wiring, behind) for arc in group}
        self._streams = [substream(seed, first[arc]) for arc in arcs]
        self.begun = np.zeros(len(arcs) + len(nested), np.int64)
        self.lived: NDArray[np.int32] = np.zeros((len(self.begun), 1), np.int32)
        self.tally = np.zeros((len(self.begun) if tallies else 0, 1))

    def begin(self, end_us: int, keeps: Floats, offered: Floats | None = None) -> None:
        """Decide for the windows that start before a time.

        Args:
            end_us: In microseconds since the start.
            keeps: Share kept on each arc, shape (arcs,).
            offered: Tuples of each input before that time, at least; shape (inputs,). Where windows count tuples.
        """
        through = shares_through(self._wiring, self.behind, keeps[None])[0]
        ends = self._ends(end_us, offered)
        for row, arc in enumerate(self._arcs):
            numbers = self._numbers(row, self.windows[arc], ends[arc])
            self._append(row, uniforms(self._streams[row], numbers // self.batch) < through[arc])
        for arc, needed in self._further.items():
            row, own = int(self.given[arc]), self.own[arc]
            assert own is not None
            positions = self._numbers(row, own, ends[arc]) * (own.slide if own.timed else 1)
            first, last = windows_at(needed, positions)
            lived = self.lived[self.fate[arc]]
            self._append(row, lived[last + 1] > lived[first])

    def _ends(self, end_us: int, offered: Floats | None) -> list[int]:
        """The end of positions on each arc: a time, or a number of tuples."""
        ends = [end_us] * len(self.windows)
        count = np.zeros(len(self._wiring.network.sources), np.int64)
        if offered is not None:
            count[: self._wiring.inputs] = np.ceil(offered)
        for arc, windows in enumerate(self.behind):
            if windows and not windows[0].timed:
                ends[arc] = end = int(count[self._wiring.source[arc]])
                own = self.own[arc]
                count[self._wiring.target[arc]] = end if own is None else -(-end // own.slide)
        return ends

    def _numbers(self, row: int, window: Window | None, end: int) -> Indices:
        assert window is not None
        numbers = -(-end // window.slide)
        if numbers > MAX_WINDOWS:
            slide = f"{window.slide / 1e6:g} s" if window.timed else f"{window.slide:,} tuples"
            raise BadInput(
                f"a window that slides by {slide} opens more than {MAX_WINDOWS:,} times in this trace; increase the"
                " slide or use --network drops=random"
            )
        return np.arange(self.begun[row], max(numbers, self.begun[row]))

    def _append(self, row: int, alive: NDArray[np.bool_]) -> None:
        begun = int(self.begun[row])
        end = begun + len(alive)
        if end >= self.lived.shape[1]:
            more = np.zeros((len(self.lived), max(end + 1, 2 * self.lived.shape[1])), np.int32)
            more[:, : self.lived.shape[1]] = self.lived
            self.lived = more
            tally = np.zeros((len(self.tally), more.shape[1]))
            tally[:, : self.tally.shape[1]] = self.tally
            self.tally = tally
        self.lived[row, begun + 1 : end + 1] = self.lived[row, begun] + np.cumsum(alive)
        self.begun[row] = end
