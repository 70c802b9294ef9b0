"""Max-min fairness as the objective: the query that gets least gets all it can, then the next; then throughput."""

import highspy
import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.program.program import Program, Scaled

_TIGHT = 1e-9
"""Shares that cannot rise by more than this are at their best."""


def fairest(program: Program, rates: Floats) -> Floats:
    """The flows whose shares of outputs are lexicographically max-min, and of these the ones with the best score.

    An output's share is what it gives over what it would give unshed. It is raised for all together as far as it goes;
    outputs that cannot rise alone are held there, and the others go on.

    Args:
        program: Of the network.
        rates: Tuples/s of each input, shape (inputs,).

    Returns:
        Shape (variables,), tuples/s. Solves up to (outputs + 1)^2 linear programs.

    Source: none in the paper, which lets weights stand for fairness (section 2); progressive filling as in Bertsekas
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
        if np.array_equal(free, np.isnan(held)):  # rounding hides what holds them
            held[free] = level
    return _solved(program, rates, shares, held)[:-1] * Scaled.from_program(program).unit


def _shares(program: Program, rates: Floats) -> Floats:
    """The share of each output that offers anything, for a scaled unit of each variable; shape (outputs, variables)."""
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
    """The best scaled flows with at least these shares, and the level above 0 that those raised have in common.

    Maximises the level if any are raised, else weights . flows, which is the score if none are given.
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
        slack = 1e-12  # what rounding took from the level that held it
        model.addRow(
            float(least[output]) - slack, highspy.kHighsInf, columns + 1, indices, np.append(row, -1.0 * rises)
        )
    model.run()
    return np.array(model.getSolution().col_value)
