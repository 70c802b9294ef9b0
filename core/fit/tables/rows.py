"""Rows of feasible input tables, and how tables are merged."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices


class TooManyRows(Exception):
    """A table exceeds its limit; a larger epsilon makes it smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class FitRows:
    """Rates that fit some nodes together, each with its plan."""

    dimensions: Indices  # the arcs whose rates the table holds, shape (dimensions,)
    rates: Floats  # Tuples/s, shape (rows, dimensions)
    scores: Floats  # of everything downstream of these arcs, shape (rows,)
    drops: Indices  # the drop arcs downstream whose shares are known, without the entering ones; shape (drops,)
    flows: Floats  # kept on these, tuples/s, shape (rows, drops)
    # utilization of nodes, and of links as numbers below 0, that rows of other tables use too; shape (rows,) each
    loads: dict[int, Floats] = field(default_factory=dict)

    @classmethod
    def without_drops(cls, dimensions: Indices, rates: Floats, scores: Floats) -> "FitRows":
        """Rows of which no shares are known."""
        return cls(dimensions, rates, scores, np.empty(0, np.int64), np.empty((len(rates), 0)))

    def __len__(self) -> int:
        return len(self.scores)

    def only(self, chosen: Indices | NDArray[np.bool_]) -> "FitRows":
        """Some of the rows."""
        loads = {shared: load[chosen] for shared, load in self.loads.items()}
        return FitRows(self.dimensions, self.rates[chosen], self.scores[chosen], self.drops, self.flows[chosen], loads)

    @property
    def needs(self) -> Floats:
        """Rates, then loads: what rows need; shape (rows, needs)."""
        return np.column_stack((self.rates, *self.loads.values()))


def merged(tables: Sequence[FitRows], most: int) -> FitRows:
    """Every combination of rows of several tables; scores add up.

    Source: FIT, section 6.3, on several children.
    """
    sizes = [len(table) for table in tables]
    if prod(sizes) > most:
        raise TooManyRows
    if len(tables) == 1:
        return tables[0]
    picked = np.indices(sizes).reshape(len(sizes), -1)
    return beside([table.only(rows) for table, rows in zip(tables, picked, strict=True)])


def beside(tables: Sequence[FitRows]) -> FitRows:
    """Tables side by side, row by row; scores add up."""
    return FitRows(
        np.concatenate([table.dimensions for table in tables]),
        np.concatenate([table.rates for table in tables], axis=1),
        np.sum([table.scores for table in tables], axis=0),
        np.concatenate([table.drops for table in tables]),
        np.concatenate([table.flows for table in tables], axis=1),
        {
            shared: np.sum([table.loads[shared] for table in tables if shared in table.loads], axis=0)
            for shared in sorted(set().union(*(table.loads for table in tables)))
        },
    )
