"""How far apart the rates of a feasible input table lie."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import Grid


@dataclass(frozen=True, slots=True, eq=False)
class Spacing:
    """How tables are made.

    Attributes:
        epsilon: Part of the highest rate of an arc between its grid lines.
        grid: Whether what lies below the edge of the feasibility triangle is left out, and with which margin.
        quantum: Score between grid lines instead, of the guaranteed grid; None, `epsilon` counts.
        max_rows: That a table may have.
    """

    epsilon: float
    grid: Grid = Grid.SAFE
    quantum: float | None = None
    max_rows: int = 1_000_000

    def steps(self, most: Floats, worth: Floats) -> Floats:
        """Between rates on arcs, 0 where no tuple is worth anything; shape (arcs,).

        Source: FIT, section 6.2.
        """
        if self.quantum is None:
            return np.where(worth > 0, self.epsilon * most, 0.0)
        with np.errstate(divide="ignore"):
            return np.where(worth > 0, self.quantum / worth, 0.0)
