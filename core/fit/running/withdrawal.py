"""Windows that a tuple dropped at a full queue takes with it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.running.living_windows import LivingWindows
from adapt.core.fit.running.window_drop import aggregates
from adapt.core.fit.tables.local_plans import worth_of_arrival

SPOILED = np.dtype(
    [
        ("row", np.int64),  # of `LivingWindows.lived`
        ("size", np.int64),  # of the windows of this row that a tuple on the arc is in
        ("slide", np.int64),
        ("arc", np.int64),  # to the aggregate that emits their results; -1: none
    ]
)
"""Windows that are withdrawn with a tuple."""


def spoiled_of(wiring: Wiring, windows: LivingWindows) -> tuple[Indices, NDArray[Any]]:
    """Windows withdrawn with a tuple of each arc.

    These are its windows at all aggregates behind the arc, and on all other arcs of which nothing else is needed.

    Returns:
        The first record of each arc and the end, shape (arcs + 1,); records of type `SPOILED`.
    """
    arcs = len(wiring.arcs)
    first, records = np.zeros(arcs + 1, np.int64), []
    behind = windows.behind
    down: dict[int, set[int]] = {}
    near: dict[int, set[int]] = {}
    last: dict[int, set[int]] = {}
    alone: dict[int, bool] = {}
    for arc in reversed(range(arcs)):
        if not behind[arc]:
            continue
        leaving = wiring.arcs_of(int(wiring.target[arc]))
        after = [at for at in range(leaving.start, leaving.stop) if behind[at]]
        ends = aggregates(wiring, arc) and len(behind[arc]) == 1
        down[arc] = {arc}.union(*(down[at] for at in after))
        near[arc] = {arc} if aggregates(wiring, arc) else {arc}.union(*(near[at] for at in after))
        last[arc] = {arc} if ends else set().union(*(last[at] for at in after))
        alone[arc] = ends or (len(after) == leaving.stop - leaving.start and all(alone[at] for at in after))
    for arc in range(arcs):
        if behind[arc]:
            window = windows.windows[arc]
            assert window is not None
            useless = {other for other in down if alone[other] and last[other] <= last[arc]}
            for other in sorted(down[arc] | useless):
                row = windows.fate[other]
                records.append((row, window.size, window.slide, other if windows.given[other] == row else -1))
            for inner in sorted(other for other in near[arc] if windows.nested[other]):
                own = windows.own[inner]
                assert own is not None
                records.append((windows.given[inner], own.size, own.slide, inner))
        first[arc + 1] = len(records)
    return first, np.array(records, SPOILED)


def withdrawn_worth(wiring: Wiring, windows: LivingWindows | None) -> Floats:
    """Value at the outputs of a withdrawn result, shape (arcs,).

    It is a result of the aggregate at the end of the arc. Aggregates behind that withdraw results of their own.
    """
    worth, arrival = np.zeros(len(wiring.arcs)), worth_of_arrival(wiring)
    if windows is None:
        return worth
    for arc in np.flatnonzero(windows.given >= 0):
        leaving = wiring.arcs_of(int(wiring.target[arc]))
        worth[arc] = sum(arrival[at] for at in range(leaving.start, leaving.stop) if not windows.behind[at])
    return worth
