"""Linear programs solved by HiGHS, point by point, with warm starts."""

from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.program.program import Program, Scaled

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
        self._solver = _solver()
        self._solver.passModel(_model(scaled))

    def values(self, upper: Floats) -> Floats:
        """The best values of the variables within these bounds, shape (variables,)."""
        self._solver.changeColsBounds(len(self._columns), self._columns, self._lower, upper)
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
