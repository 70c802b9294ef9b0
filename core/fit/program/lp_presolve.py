"""Presolve: identical inputs of a program share one variable."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import Program, Scaled

_ALIKE = 1e-13
"""Relative difference up to which columns count as equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """A scaled program in which proportional inputs share one variable.

    Inputs share a variable if they load and score the same, up to a factor; each of them keeps the same share. Upper
    bounds are multiples of a few linear functions of the rates, the dimensions of the problem: one per input, or fewer.
    """

    scaled: Scaled  # over merged variables, C of them; their units are unused
    column_of: Indices  # the merged variable of each variable, shape (variables,)
    input_of: Indices  # as in the program, shape (variables,)
    unit: Floats  # Tuples/s per unit of each variable, shape (variables,)
    rays: Floats  # value of each dimension per tuple/s of each input; shape (dimensions, inputs)
    dimension_of: Indices  # the dimension that bounds a merged variable, -1 if none does. Shape (C,)
    height: Floats  # that bound / the value of the dimension; 0 without one. Shape (C,)

    @classmethod
    def from_program(cls, program: Program) -> "Merged":
        """Merge proportional inputs."""
        scaled = Scaled.from_program(program)
        columns = np.concatenate((scaled.rows, scaled.weights[None])).T
        size = np.abs(columns).max(axis=1)
        size[size == 0] = 1.0
        bounded = program.input_of >= 0
        alone = np.where(bounded, 0, 1 + np.arange(len(columns)))[:, None]
        first, column_of = _first_of_alike(np.concatenate((columns / size[:, None], alone), axis=1))
        factor = size / size[first[column_of]]
        bounds = np.zeros((len(first), program.inputs))
        of = np.flatnonzero(bounded)
        np.add.at(bounds, (column_of[of], program.input_of[of]), factor[of] / scaled.unit[of])
        most = bounds.max(axis=1, initial=0.0)
        merged = np.flatnonzero(most > 0)
        ray, dimension = _first_of_alike(bounds[merged] / most[merged, None])
        dimension_of = np.full(len(first), -1, np.int64)
        dimension_of[merged] = dimension
        return cls(
            Scaled(scaled.unit[first], scaled.score, scaled.rows[:, first], scaled.limits, scaled.weights[first]),
            column_of,
            program.input_of,
            scaled.unit,
            np.ascontiguousarray(bounds[merged[ray]] / most[merged[ray], None]),
            dimension_of,
            most,
        )

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return len(self.rays)

    def upper(self, rates: Floats) -> Floats:
        """Bounds of merged variables; shape (inputs,) to (C,)."""
        return np.where(self.dimension_of >= 0, (self.rays @ rates)[self.dimension_of] * self.height, np.inf)

    def flows(self, rates: Floats, values: Floats) -> Floats:
        """The flows for values of merged variables, tuples/s; shape (variables,)."""
        upper = self.upper(rates)
        whole = values >= upper
        share = np.divide(values, upper, out=np.ones_like(values), where=~whole & np.isfinite(upper))
        split = values[self.column_of] * self.unit
        return np.where(self.input_of >= 0, share[self.column_of] * rates[self.input_of], split)


def _first_of_alike(rows: Floats) -> tuple[Indices, Indices]:
    """The first of each set of equal rows, ascending, and each row's set number."""
    _, first, inverse = np.unique(np.round(rows / _ALIKE), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[inverse.reshape(-1)]
