"""Max-min fairness as the objective of load shedding."""

import highspy
import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.planners.program import Program, Scaled

_TIGHT = 1e-9
"""Shares that cannot rise by more than this are optimal."""


def fairest(program: Program, rates: Floats) -> Floats:
    """Flows with lexicographically max-min output shares and, among these, the best score.

    An output's share is its rate over its rate without shedding. All shares are raised together as far as possible;
    outputs that cannot rise alone are fixed there, and the others continue.

    Args:
        program: Linear program of the network.
        rates: Rate of each input, tuples/s, shape (inputs,).

    Returns:
        Shape (variables,), tuples/s. Solves up to (outputs + 1)^2 linear programs.

    Source: not in the paper, which expresses fairness by weights (section 2); progressive filling as in Bertsekas
    and Gallager, Data Networks, section 6.5.2.
    """
    shares = _shares(program, rates)
    held = np.full(len(shares), np.nan)
    while np.isnan(held).any():
        free = np.isnan(held)
        level = _solved(program, rates, shares, np.where(free, 0.0, held), raised=free)[-1]
        for output in np.flatnonzero(free):
            least = np.where(free, level, held)
            alone = _solved(program, rates, shares, least, weights=shares[output])
            if shares[output] @ alone[:-1] <= level + _TIGHT:
                held[output] = level
        if np.array_equal(free, np.isnan(held)):  # rounding hides the binding constraint
            held[free] = level
    return _solved(program, rates, shares, held)[:-1] * Scaled.from_program(program).unit


def _shares(program: Program, rates: Floats) -> Floats:
    """Share of each output with a rate, per scaled unit of each variable; shape (outputs, variables)."""
    wiring = program.wiring
    outputs = np.flatnonzero(wiring.target < 0)
    unshed = wiring.unshed(rates[None])[0, outputs]
    offering = unshed > 0
    flow: Floats = program.flow[outputs][offering] * Scaled.from_program(program).unit / unshed[offering, None]
    return flow


def _solved(
    program: Program,
    rates: Floats,
    shares: Floats,
    least: Floats,
    raised: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Best scaled flows with at least these shares, and the common level of the raised ones.

    Maximizes the level if any are raised, else weights . flows, which by default is the score.
    """
    scaled = Scaled.from_program(program)
    columns = len(scaled.unit)
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("primal_feasibility_tolerance", 1e-10)
    model.setOptionValue("dual_feasibility_tolerance", 1e-10)
    cost = scaled.weights if weights is None else weights
    upper = program.upper(rates) / scaled.unit
    for column in range(columns):
        model.addCol(-float(cost[column]) if raised is None else 0.0, 0.0, float(upper[column]), 0, [], [])
    model.addCol(0.0 if raised is None else -1.0, 0.0, 1.0, 0, [], [])
    indices = np.arange(columns + 1, dtype=np.int32)
    for row, limit in zip(scaled.rows, scaled.limits, strict=True):
        model.addRow(-highspy.kHighsInf, float(limit), columns + 1, indices, np.append(row, 0.0))
    for output, row in enumerate(shares):
        rises = raised is not None and raised[output]
        slack = 1e-12  # what rounding removed from the fixed level
        model.addRow(
            float(least[output]) - slack, highspy.kHighsInf, columns + 1, indices, np.append(row, -1.0 * rises)
        )
    model.run()
    return np.array(model.getSolution().col_value)
