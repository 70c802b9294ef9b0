"""Linear programs solved by HiGHS, point by point, with warm starts."""

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.program import Program, Scaled

_FEASIBLE = 1e-10
"""Feasibility tolerance of the solver, with limits scaled near 1; the smallest it accepts."""


class WarmSolver:
    """A scaled program that reuses its last basis.

    Solved by HiGHS (Huangfu and Hall, Parallelizing the dual revised simplex method, Mathematical Programming
    Computation 10, 2018) with the dual simplex method, which starts from the last basis: where only bounds change, that
    basis stays dual feasible.
    """

    def __init__(self, scaled: Scaled) -> None:
        self._columns = np.arange(len(scaled.weights), dtype=np.int32)
        self._lower = np.zeros(len(self._columns))
        self._rows, self._most = scaled.rows, _twice_the_most(scaled.rows, scaled.limits)
        self._solver = _solver()
        self._solver.passModel(_model(scaled))

    def values(self, upper: Floats) -> Floats:
        """The best values of the variables within these bounds, shape (variables,)."""
        self._solver.changeColsBounds(len(self._columns), self._columns, self._lower, np.minimum(upper, self._most))
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self._solver.clearSolver()  # without the last basis, from which it may find no way
            self._solver.run()
        status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS ended with {status} on a solvable program with bounds {upper}")
        return np.asarray(np.clip(np.array(self._solver.getSolution().col_value), 0.0, upper))

    def aim(self, weights: Floats) -> None:
        """Maximize other weights from now on; shape (variables,)."""
        self._solver.changeColsCost(len(self._columns), self._columns, weights)

    def limit(self, limits: Floats) -> None:
        """Set new right-hand sides; shape (rows,)."""
        self._most = _twice_the_most(self._rows, limits)
        free = np.full(len(limits), -highspy.kHighsInf)
        self._solver.changeRowsBounds(len(limits), np.arange(len(limits), dtype=np.int32), free, limits)

    def prices(self) -> Floats:
        """Shadow prices of the rows at the last solution; shape (rows,)."""
        return np.asarray(np.maximum(np.array(self._solver.getSolution().row_dual), 0.0))

    def basis(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The basis of the last solution.

        Returns:
            Whether each variable, then each row's slack, is basic, as many as there are rows; and whether each variable
                is at its upper bound.
        """
        found = self._solver.getBasis()
        states = np.array([int(state) for state in (*found.col_status, *found.row_status)])
        return states == _BASIC, states[: len(self._columns)] == _UPPER


def _twice_the_most(rows: Floats, limits: Floats) -> Floats:
    """Bounds of the variables that cut off nothing; higher ones make a solver lose its way. Shape (variables,)."""
    uses = (rows > 0) & np.all(rows >= 0, axis=1, keepdims=True) & (limits > 0)[:, None]
    ends = np.divide(limits[:, None], rows, out=np.full(rows.shape, np.inf), where=uses)
    return np.asarray(2 * ends.min(axis=0, initial=np.inf))


class WarmProgram:
    """The program of a network, solved for one point after another."""

    def __init__(self, program: Program) -> None:
        self._program, self._scaled = program, Scaled.from_program(program)
        self._solver = WarmSolver(self._scaled)

    def flows(self, rates: Floats) -> Floats:
        """The best flows, shape (variables,), for rates of shape (inputs,), tuples/s."""
        upper = self._program.upper(rates)
        return np.minimum(self._solver.values(upper / self._scaled.unit) * self._scaled.unit, upper)


_BASIC, _UPPER = int(highspy.HighsBasisStatus.kBasic), int(highspy.HighsBasisStatus.kUpper)


def _model(scaled: Scaled) -> highspy.HighsLp:
    rows, columns = scaled.rows.shape
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, rows
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = scaled.weights
    model.col_lower_, model.col_upper_ = np.zeros(columns), np.zeros(columns)
    model.row_lower_, model.row_upper_ = np.full(rows, -highspy.kHighsInf), scaled.limits
    column, row = np.nonzero(scaled.rows.T)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.searchsorted(column, np.arange(columns + 1)).astype(np.int32)
    model.a_matrix_.index_, model.a_matrix_.value_ = row.astype(np.int32), scaled.rows[row, column]
    return model


def _solver() -> Any:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "solver": "simplex",
        "presolve": "off",
        "primal_feasibility_tolerance": _FEASIBLE,
        "dual_feasibility_tolerance": _FEASIBLE,
        "small_matrix_value": 1e-12,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver


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
