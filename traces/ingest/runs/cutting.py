"""Cuts of sorted runs at exact ranks of their merged order."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.traces.ingest.runs.run_files import INDEX_ROWS, Run

Positions: TypeAlias = NDArray[np.int64]
"""A position in each run; shape (runs,)."""

PROBES = 16
"""Rows of each run that one round of narrowing looks at."""

FEW = 1 << 14
"""Rows that are sorted rather than narrowed."""


def cut(runs: Sequence[Run], rank: int, low: Positions, high: Positions) -> Positions:
    """Cuts of each run at a rank.

    The rows before the cuts are the first `rank` of all.

    Args:
        low, high: Bounds of the cuts; all rows before `low` are among the first, none from `high` on.
    """
    while rank < high.sum() and high.sum() - low.sum() > FEW:
        narrowed = _narrowed(runs, rank, low, high)
        if np.array_equal(narrowed[0], low) and np.array_equal(narrowed[1], high):
            break
        low, high = narrowed
    if rank >= high.sum():
        return high
    places = [np.arange(first, end) for first, end in zip(low.tolist(), high.tolist(), strict=True)]
    return _before(runs, _ordered(runs, places)[0][:, rank - int(low.sum())], low, high)


def _narrowed(runs: Sequence[Run], rank: int, low: Positions, high: Positions) -> tuple[Positions, Positions]:
    """Closer bounds, found from some rows of each run."""
    places = [_probes(first, end) for first, end in zip(low.tolist(), high.tolist(), strict=True)]
    probes, whose = _ordered(runs, places)
    weights = (high - low) / np.maximum([len(rows) for rows in places], 1)
    # about how many rows are before each probe, and by how many that may be wrong
    before = np.cumsum(weights[whose]) - weights[whose] / 2
    slack = np.sqrt((weights**2).sum()) * 2
    wanted = rank - low.sum()
    under, over = np.searchsorted(before, wanted - slack) - 1, np.searchsorted(before, wanted + slack)
    if under >= 0:
        found = _before(runs, probes[:, under], low, high)
        low, high = (found, high) if found.sum() <= rank else (low, found)
    if over < probes.shape[1]:
        found = _before(runs, probes[:, over], low, high)
        low, high = (low, found) if found.sum() >= rank else (found, high)
    return low, high


def _probes(low: int, high: int) -> Positions:
    """Some rows of a range, those of the index if it is long."""
    width = high - low
    if width > 2 * INDEX_ROWS:
        return np.arange(-(-low // INDEX_ROWS) * INDEX_ROWS, high, INDEX_ROWS)
    count = min(PROBES, width)
    return low + width * (2 * np.arange(count) + 1) // (2 * max(count, 1))


def _ordered(runs: Sequence[Run], places: Sequence[Positions]) -> tuple[NDArray[np.int64], Positions]:
    """Time, file and line of some rows of each run in order, and the run of each; shapes (3, rows), (rows,)."""
    asked = [(at, run, rows) for at, (run, rows) in enumerate(zip(runs, places, strict=True)) if len(rows)]
    keys = np.concatenate([_order_at(run, rows) for _, run, rows in asked], axis=1)
    whose = np.repeat([at for at, _, _ in asked], [len(rows) for _, _, rows in asked])
    order = np.lexsort(keys[::-1])
    return keys[:, order], whose[order]


def _order_at(run: Run, rows: Positions) -> NDArray[np.int64]:
    """Time, file and line of some rows; shape (3, rows)."""
    indexed = not (rows % INDEX_ROWS).any()
    order, at = (run.index, rows // INDEX_ROWS) if indexed else (run.order, rows)
    return np.stack([np.int64(column[at]) for column in order])


def _before(runs: Sequence[Run], place: NDArray[np.int64], low: Positions, high: Positions) -> Positions:
    bounds = zip(runs, low.tolist(), high.tolist(), strict=True)
    return np.array([run.before(place.tolist(), first, end) for run, first, end in bounds], np.int64)
