"""Epsilon-covers: fewer rows of a table, with a bounded loss."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.fit.network.wiring import Indices

WORK = 100_000_000
"""Comparisons of two numbers after which all rows that are left stay."""


def covered(coordinates: Floats, scores: Floats, loss: float) -> Indices:
    """Rows that represent all others, within a loss of score.

    Each row has one at or below it that scores almost as much.

    The best row that nothing represents so far chooses its representative: among rows with at most its coordinates and
    at least (1 - loss) of its score, the one with the lowest score. Representatives stay, so no loss adds up here.

    Args:
        coordinates: What must not rise, shape (rows, coordinates).
        scores: At least 0, shape (rows,).
        loss: Share of its score that a row may lose, in [0, 1). 0: only dominated rows go.

    Returns:
        The rows that stay, ascending.

    Source: FIT, section 6.3, whose tactics for similar rows have no bound.
    """
    order = np.lexsort((coordinates.sum(axis=1), -scores))
    ranked, ordered = np.ascontiguousarray(coordinates[order]), np.ascontiguousarray(scores[order])
    ends = np.searchsorted(-ordered, -(1 - loss) * ordered, "right")  # at least this share: the rows before
    stays = np.zeros(len(order), np.bool_)
    _cover(ranked, ordered, ends, 1 - loss, WORK, stays, np.empty(len(order), np.int64))
    return np.sort(order[stays])


@compiled
def _cover(
    rates: Floats, scores: Floats, ends: Indices, share: float, work: int, stays: NDArray[np.bool_], kept: Indices
) -> None:
    """Choose representatives of rows by descending score."""
    rows, axes = rates.shape
    number = 0
    for row in range(rows):
        found = False
        for back in range(number):
            other = kept[number - 1 - back]
            found = scores[other] >= share * scores[row]
            if found:
                for axis in range(axes):
                    work -= 1
                    if rates[other, axis] > rates[row, axis]:
                        found = False
                        break
            if found:
                break
        if found:
            continue
        chosen = row
        for other in range(ends[row] - 1, row, -1):
            below = True
            for axis in range(axes):
                work -= 1
                if rates[other, axis] > rates[row, axis]:
                    below = False
                    break
            if below:
                chosen = other
                break
        stays[chosen] = True
        kept[number] = chosen
        number += 1
        if work < 0:
            stays[row:] = True
            return
