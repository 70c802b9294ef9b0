"""Window Drop in a running network: which windows are kept."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.network.names import BATCH
from adapt.core.fit.network.network import Operator, Window
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.running.window_drop import aggregates, needed_for, windows_at, windows_behind
from adapt.core.random_bits import substream, uniforms

MAX_WINDOWS = 50_000_000
"""Limit of windows per aggregate; more do not fit in memory."""


def windows_of_arcs(wiring: Wiring) -> tuple[tuple[Window, ...], ...]:
    """Windows of the aggregates downstream of each arc, nearest first.

    The windows of the last of them are kept or dropped whole. Empty for arcs where random tuples are dropped.

    Raises:
        UsageError: an operator before an aggregate merges streams, of which one could be dropped and another kept; or
            the window counts tuples, which drops would shift. Or as `windows_behind`.
    """
    behind = windows_behind(wiring)
    for arc, windows in enumerate(behind):
        if not windows:
            continue
        operator = wiring.network.sources[wiring.target[arc]]
        assert isinstance(operator, Operator)
        if len(operator.inputs) > 1:
            raise UsageError(
                f"operator {operator.name!r} merges streams before an aggregate, so no window can be dropped whole; use"
                " --drops random"
            )
        if aggregates(wiring, arc) and not windows[0].timed:
            raise UsageError(
                f"operator {operator.name!r} has a count window, which drops would shift; give it durations or use"
                " --drops random"
            )
    return behind


class LivingWindows:
    """Decides for each window, when it starts, whether it is kept.

    The decision follows the share that the arc keeps at that time, and applies to windows of the last aggregate
    downstream of the arc; a kept window needs results of the aggregates before it, and these need tuples. Later plans
    do not change a window's fate, and the windows of one batch share a random draw. A tuple is kept on an arc if a kept
    window needs it there. For each tuple, the last aggregate emits its usual output times the share of the tuple's
    windows that are kept on all arcs before it; an aggregate before others opens the windows that these need, and its
    result takes the position at which its window starts. None of these windows has lost a tuple. Where an operator
    before an aggregate emits a fraction of a tuple per tuple, drops shift which tuples it emits, by less than one
    tuple.

    Attributes:
        windows: The window that a kept result needs on each arc, in positions on that arc; None without one.
        own: For arcs to aggregates, their window; else None.
        nested: Whether an arc leads to an aggregate with further aggregates downstream; shape (arcs,).
        fate: The row of `lived` for windows kept on the arc, -1 without one. Shape (arcs,).
        given: For arcs to aggregates, the row for their own windows that are opened; else -1.
        lived: Number of kept windows before each window number; shape (rows, numbers).
        batch: Consecutive windows kept or dropped together.
    """

    def __init__(self, wiring: Wiring, seed: int, batch: int = BATCH) -> None:
        """A network in which no window has started.

        Raises:
            UsageError: windows cannot be dropped; see `windows_of_arcs`.
        """
        behind = windows_of_arcs(wiring)
        self.windows = tuple(needed_for(windows) if windows else None for windows in behind)
        to_aggregate = [bool(windows) and aggregates(wiring, arc) for arc, windows in enumerate(behind)]
        self.own = tuple(windows[0] if inner else None for windows, inner in zip(behind, to_aggregate, strict=True))
        self.nested = np.array(
            [inner and len(windows) > 1 for windows, inner in zip(behind, to_aggregate, strict=True)]
        )
        self.batch = batch
        self._arcs = arcs = [arc for arc, window in enumerate(self.windows) if window is not None]
        inner, nested = [arc for arc in arcs if to_aggregate[arc]], np.flatnonzero(self.nested).tolist()
        self.fate, self.given = np.full(len(self.windows), -1), np.full(len(self.windows), -1)
        self.fate[arcs] = np.arange(len(arcs))
        self._through = {arc: len(arcs) + at for at, arc in enumerate(inner)}
        """The row of windows kept on all arcs up to one."""
        self.given[inner] = list(self._through.values())
        self.given[nested] = len(arcs) + len(inner) + np.arange(len(nested))
        self._further = {arc: needed_for(behind[arc][1:]) for arc in nested}
        """What a kept window needs of an aggregate's results."""
        self._streams = [substream(seed, arc) for arc in arcs]
        self._ways = {arc: way_to(wiring, arc) for arc in inner}
        self._begun = np.zeros(len(arcs) + len(inner) + len(nested), np.int64)
        self.lived: NDArray[np.int32] = np.zeros((len(self._begun), 1), np.int32)

    def begin(self, end_us: int, keeps: Floats) -> None:
        """Decide for the windows that start before a time.

        Args:
            end_us: In microseconds since the start.
            keeps: Share kept on each arc, shape (arcs,).

        Raises:
            BadInput: there are too many windows.
        """
        alive: dict[int, NDArray[np.bool_]] = {}
        for row, arc in enumerate(self._arcs):
            numbers = self._numbers(row, self.windows[arc], end_us)
            alive[arc] = uniforms(self._streams[row], numbers // self.batch) < keeps[arc]
            self._append(row, alive[arc])
        for arc, way in self._ways.items():
            self._append(self._through[arc], np.logical_and.reduce([alive[before] for before in way]))
        for arc, needed in self._further.items():
            row, own = int(self.given[arc]), self.own[arc]
            assert own is not None
            first, last = windows_at(needed, self._numbers(row, own, end_us) * own.slide)
            lived = self.lived[self._through[arc]]
            self._append(row, lived[last + 1] > lived[first])

    def _numbers(self, row: int, window: Window | None, end_us: int) -> Indices:
        assert window is not None
        end = -(-end_us // window.slide)
        if end > MAX_WINDOWS:
            raise BadInput(
                f"a window that slides by {window.slide / 1e6:g} s opens more than {MAX_WINDOWS:,} times in this trace;"
                " increase the slide or use --drops random"
            )
        return np.arange(self._begun[row], max(end, self._begun[row]))

    def _append(self, row: int, alive: NDArray[np.bool_]) -> None:
        begun = int(self._begun[row])
        end = begun + len(alive)
        if end >= self.lived.shape[1]:
            more = np.zeros((len(self.lived), max(end + 1, 2 * self.lived.shape[1])), np.int32)
            more[:, : self.lived.shape[1]] = self.lived
            self.lived = more
        self.lived[row, begun + 1 : end + 1] = self.lived[row, begun] + np.cumsum(alive)
        self._begun[row] = end


def way_to(wiring: Wiring, arc: int) -> list[int]:
    """Arcs from an input to one arc, without merges."""
    way = [arc]
    while wiring.source[way[-1]] >= wiring.inputs:
        way.append(int(np.flatnonzero(wiring.target == wiring.source[way[-1]])[0]))
    return way
