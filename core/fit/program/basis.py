"""An optimal basis: its values and prices at all rates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.basis_search import TOLERANCE
from adapt.core.fit.program.lp_presolve import Merged


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """The solution of a presolved program where one basis is optimal."""

    inside: Indices  # its basic variables; from the number of columns on, slacks of rows. Shape (rows,)
    upper: NDArray[np.bool_]  # whether each other variable is at its upper bound, shape (columns,)
    lines: Floats  # the basic variables: constants, then slopes in the dimensions; shape (rows, 1 + dimensions)
    prices: Floats  # shadow prices of the rows, shape (rows,)
    dual: Floats  # the best score: constant, then slopes in the dimensions; shape (1 + dimensions,)

    @classmethod
    def from_solver(cls, merged: Merged, basic: NDArray[np.bool_], at_upper: NDArray[np.bool_]) -> "Basis | None":
        """The basis that a solver ended with; None if it is singular.

        Args:
            basic: Whether each variable, then each slack, is basic.
            at_upper: Whether each variable is at its upper bound.
        """
        scaled, columns = merged.scaled, len(at_upper)
        inside = np.flatnonzero(basic)
        try:
            inverse = np.linalg.inv(np.concatenate((scaled.rows, np.eye(len(scaled.limits))), axis=1)[:, inside])
        except np.linalg.LinAlgError:
            return None
        worth = np.append(scaled.weights, np.zeros(len(scaled.limits)))[inside]
        # Where both bounds are 0, the solver may report either one; the reduced cost decides.
        gained = scaled.weights - (worth @ inverse) @ scaled.rows
        upper = (gained > TOLERANCE) | ((gained > -TOLERANCE) & at_upper)
        upper &= ~basic[:columns] & (merged.dimension_of >= 0)
        held = np.flatnonzero(upper)
        per_rate = np.zeros((columns, merged.dimensions))
        per_rate[held, merged.dimension_of[held]] = merged.height[held]
        lines = np.concatenate(((inverse @ scaled.limits)[:, None], -inverse @ (scaled.rows @ per_rate)), axis=1)
        lines[np.abs(lines) < 1e-15 * np.abs(lines).max(axis=1, keepdims=True, initial=0.0)] = 0.0
        dual = worth @ lines
        dual[1:] += scaled.weights @ per_rate
        return cls(inside, upper, lines, worth @ inverse, dual)

    def values(self, merged: Merged) -> Floats:
        """All variables: constants, then slopes in the dimensions.

        Shape (columns, 1 + dimensions).
        """
        columns = len(self.upper)
        values = np.zeros((columns, 1 + merged.dimensions))
        held = np.flatnonzero(self.upper)
        values[held, 1 + merged.dimension_of[held]] = merged.height[held]
        own = self.inside < columns
        values[self.inside[own]] = self.lines[own]
        return values
