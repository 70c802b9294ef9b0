"""The rows of a feasible input table while it is made, and how tables become one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices


class TooManyRows(Exception):
    """A table would be larger than it may be; a larger epsilon makes a smaller one."""


@dataclass(frozen=True, slots=True, eq=False)
class FitRows:
    """Rates that some nodes can take together, each with the plan that makes them feasible.

    Attributes:
        dimensions: The arcs whose rates stand in the table, shape (dimensions,).
        rates: Tuples/s, shape (rows, dimensions).
        scores: Of everything behind these arcs, shape (rows,).
        flows: Kept on the drop arcs behind them, 0 on others; shape (rows, variables of the program).
    """

    dimensions: Indices
    rates: Floats
    scores: Floats
    flows: Floats

    def __len__(self) -> int:
        return len(self.scores)

    def only(self, chosen: Indices | NDArray[np.bool_]) -> "FitRows":
        """Some of the rows."""
        return FitRows(self.dimensions, self.rates[chosen], self.scores[chosen], self.flows[chosen])


def merged(tables: Sequence[FitRows], most: int) -> FitRows:
    """Every row of each table with every row of the others; scores add.

    Raises:
        TooManyRows: they are more than `most`.

    Source: FIT, section 6.3, on several children.
    """
    sizes = [len(table) for table in tables]
    if prod(sizes) > most:
        raise TooManyRows
    if len(tables) == 1:
        return tables[0]
    picked = np.indices(sizes).reshape(len(sizes), -1)
    chosen = [table.only(rows) for table, rows in zip(tables, picked, strict=True)]
    return FitRows(
        np.concatenate([table.dimensions for table in chosen]),
        np.concatenate([table.rates for table in chosen], axis=1),
        np.sum([table.scores for table in chosen], axis=0),
        np.sum([table.flows for table in chosen], axis=0),
    )


def without_similar(rows: FitRows, loads: Floats, similar: float) -> FitRows:
    """One row of each set of rows with similar rates: the best score, then the least load, then the first.

    Args:
        loads: What each row loads the node that makes the table, shape (rows,).
        similar: Rates are similar that round to the same multiple of this part of the largest of their arc.

    Source: FIT, section 6.3; what similar means is left open there.
    """
    if not len(rows):
        return rows
    cell = np.where(rows.rates.max(axis=0) > 0, rows.rates.max(axis=0), 1.0) * similar
    best_first = np.lexsort((loads, -rows.scores))
    _, first = np.unique(np.round(rows.rates[best_first] / cell), axis=0, return_index=True)
    return rows.only(np.sort(best_first[first]))
