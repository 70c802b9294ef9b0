"""Window Drop while a network runs: which windows live, and so which tuples are kept and what aggregates give."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.resources.functions import Floats
from adapt.core.shedding.coins import coins, stream_of
from adapt.core.shedding.names import BATCH, OperatorKind
from adapt.core.shedding.network import Operator, Window
from adapt.core.shedding.window_drop import windows_behind
from adapt.core.shedding.wiring import Indices, Wiring

MOST_WINDOWS = 50_000_000
"""Of one aggregate; more do not fit in memory."""


def window_of_arcs(wiring: Wiring) -> tuple[Window | None, ...]:
    """The window whose life decides on the tuples of each arc; None where tuples are dropped at random. Of every arc.

    Raises:
        UsageError: before an aggregate stands another, or something that merges streams, of which one could be dropped
            and the other not; or its window is one of tuples, whose numbers change where tuples are dropped. Or as
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
                f"operator {operator.name!r} merges streams before an aggregate, so that a window could lack the tuples"
                " of one of them; drop at random there"
            )
        if not _aggregates(wiring, arc):
            continue
        if len(windows) > 1:
            raise UsageError(
                f"behind the aggregate {operator.name!r} is another, and a replay drops windows before one only;"
                " drop at random there"
            )
        if not windows[0].timed:
            raise UsageError(
                f"operator {operator.name!r} has a window of tuples, whose numbers change where some are dropped; give"
                " it lengths of time, or drop at random"
            )
    return tuple(windows[0] if windows else None for windows in behind)


class LivingWindows:
    """Whether each window lives is decided when it begins, by the share that its arc keeps then.

    A window keeps its fate whatever is planned later, and windows of one batch have one coin. A tuple is kept on an arc
    if a window lives there that it is in. An aggregate gives for a tuple as much of what it would as the part of the
    tuple's windows that live on all arcs before it; these have lost no tuple. Where an operator before it gives a part
    of a tuple for one, which of them it gives shifts with what is dropped, by less than one tuple.

    Attributes:
        windows: Of each arc, or None.
        fate: The row of `lived` that tells of the arc's own windows; -1, there are none. Shape (arcs,).
        given: Of arcs to aggregates, the row that tells of windows that live on all arcs before; else -1.
        lived: How many windows before each number live; shape (rows, numbers).
    """

    def __init__(self, wiring: Wiring, seed: int, batch: int = BATCH) -> None:
        """No window has begun.

        Raises:
            UsageError: windows cannot be dropped; see `window_of_arcs`.
        """
        self.windows = window_of_arcs(wiring)
        self._batch = batch
        arcs = [arc for arc, window in enumerate(self.windows) if window is not None]
        inner = [arc for arc in arcs if _aggregates(wiring, arc)]
        self.fate, self.given = np.full(len(self.windows), -1), np.full(len(self.windows), -1)
        self.fate[arcs] = np.arange(len(arcs))
        self.given[inner] = len(arcs) + np.arange(len(inner))
        self._streams = [stream_of(seed, arc) for arc in arcs]
        self._arcs = arcs
        self._ways = {arc: _way_to(wiring, arc) for arc in inner}
        self._begun = np.zeros(len(arcs) + len(inner), np.int64)
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
            numbers = self._numbers(row, arc, end_us)
            alive[arc] = coins(self._streams[row], numbers // self._batch) < keeps[arc]
            self._append(row, alive[arc])
        for arc, way in self._ways.items():
            self._append(int(self.given[arc]), np.logical_and.reduce([alive[before] for before in way]))

    def _numbers(self, row: int, arc: int, end_us: int) -> Indices:
        window = self.windows[arc]
        assert window is not None
        end = -(-end_us // window.slide)
        if end > MOST_WINDOWS:
            raise BadInput(
                f"a window that begins every {window.slide / 1e6:g} s comes to more than {MOST_WINDOWS:,} in this"
                " trace; let it slide by more, or drop at random"
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


def _aggregates(wiring: Wiring, arc: int) -> bool:
    operator = wiring.network.sources[wiring.target[arc]]
    return isinstance(operator, Operator) and operator.kind is OperatorKind.AGGREGATE


def _way_to(wiring: Wiring, arc: int) -> list[int]:
    """The arcs from an input up to one, which nothing merges into."""
    way = [arc]
    while wiring.source[way[-1]] >= wiring.inputs:
        way.append(int(np.flatnonzero(wiring.target == wiring.source[way[-1]])[0]))
    return way
