"""Window Drop while a network runs: which windows live, and so which tuples are kept and what aggregates give."""

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
"""Of one aggregate; more do not fit in memory."""


def windows_of_arcs(wiring: Wiring) -> tuple[tuple[Window, ...], ...]:
    """The windows of the aggregates behind each arc, nearest first, of which those of the last live or die.

    None where tuples are dropped at random. Of every arc.

    Raises:
        UsageError: before an aggregate stands something that merges streams, of which one could be dropped and the
            other not; or its window is one of tuples, whose numbers change where tuples are dropped. Or as
            `windows_behind`.
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
    """Whether each window lives is decided when it begins, by the share that its arc keeps then.

    These are windows of the last aggregate behind an arc; one that lives needs results of those before, and these need
    tuples. A window keeps its fate whatever is planned later, and windows of one batch share one draw. A tuple is kept
    on an arc if it is needed there by a window that lives. The last aggregate gives for a tuple as much of what it
    would as the part of the tuple's windows that live on all arcs before it; one before others opens the windows that
    these need, and a result has its place where its window begins. All of these have lost no tuple. Where an operator
    before an aggregate gives a part of a tuple for one, which of them it gives shifts with what is dropped, by less
    than one tuple.

    Attributes:
        windows: What a window that lives needs on each arc, counted as that is; None, there are none.
        own: Of arcs to aggregates, their window; else None.
        nested: Whether an arc goes to an aggregate before others; shape (arcs,).
        fate: The row of `lived` that tells of windows that live on the arc; -1, there are none. Shape (arcs,).
        given: Of arcs to aggregates, the row that tells of own windows that are opened; else -1.
        lived: How many windows before each number live; shape (rows, numbers).
    """

    def __init__(self, wiring: Wiring, seed: int, batch: int = BATCH) -> None:
        """No window has begun.

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
        self._batch = batch
        self._arcs = arcs = [arc for arc, window in enumerate(self.windows) if window is not None]
        inner, nested = [arc for arc in arcs if to_aggregate[arc]], np.flatnonzero(self.nested).tolist()
        self.fate, self.given = np.full(len(self.windows), -1), np.full(len(self.windows), -1)
        self.fate[arcs] = np.arange(len(arcs))
        self._through = {arc: len(arcs) + at for at, arc in enumerate(inner)}
        """The row of windows that live on all arcs up to one."""
        self.given[inner] = list(self._through.values())
        self.given[nested] = len(arcs) + len(inner) + np.arange(len(nested))
        self._further = {arc: needed_for(behind[arc][1:]) for arc in nested}
        """What a window that lives needs of the results of an aggregate."""
        self._streams = [substream(seed, arc) for arc in arcs]
        self._ways = {arc: _way_to(wiring, arc) for arc in inner}
        self._begun = np.zeros(len(arcs) + len(inner) + len(nested), np.int64)
        self.lived: NDArray[np.int32] = np.zeros((len(self._begun), 1), np.int32)

    def begin(self, end_us: int, keeps: Floats) -> None:
        """Decide on the windows that begin before a time, and have not yet.

        Args:
            end_us: In microseconds since the start.
            keeps: Shares kept on arcs, shape (arcs,).

        Raises:
            BadInput: there are too many.
        """
        alive: dict[int, NDArray[np.bool_]] = {}
        for row, arc in enumerate(self._arcs):
            numbers = self._numbers(row, self.windows[arc], end_us)
            alive[arc] = uniforms(self._streams[row], numbers // self._batch) < keeps[arc]
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


def _way_to(wiring: Wiring, arc: int) -> list[int]:
    """The arcs from an input up to one, which nothing merges into."""
    way = [arc]
    while wiring.source[way[-1]] >= wiring.inputs:
        way.append(int(np.flatnonzero(wiring.target == wiring.source[way[-1]])[0]))
    return way
