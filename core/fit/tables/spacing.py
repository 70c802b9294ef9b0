"""Spacing of the rates in a feasible input table."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import Grid


@dataclass(frozen=True, slots=True, eq=False)
class Spacing:
    """How tables are spaced, and how large they may be.

    Attributes:
        epsilon: Distance between grid lines, as a share of an arc's highest rate.
        grid: Whether rates in the feasibility triangle are omitted, and with which margin.
        quantum: Of the guaranteed grid: score between grid lines; None: `epsilon` applies.
        max_rows: Maximum rows of a table.
    """

    epsilon: float
    grid: Grid = Grid.SAFE
    quantum: float | None = None
    max_rows: int = 1_000_000

    def steps(self, most: Floats, worth: Floats) -> Floats:
        """Distance between rates on each arc, 0 without value; shape (arcs,).

        Source: FIT, section 6.2.
        """
        if self.quantum is None:
            return np.where(worth > 0, self.epsilon * most, 0.0)
        with np.errstate(divide="ignore"):
            return np.where(worth > 0, self.quantum / worth, 0.0)
