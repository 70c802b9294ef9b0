"""Maps tables of children back to the inputs of their parent."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.rows import FitRows, TooManyRows


def mapped_back(
    program: Program, node: int, operators: Indices, rows: FitRows, epsilon: float, most: int
) -> tuple[FitRows, Floats]:
    """A table over a node's outputs, turned into one over its inputs.

    Along a path, rates are divided by selectivities. A split must supply the largest rate that a branch takes, and the
    other branches drop the rest. The rate that a union or join must supply is divided between its inputs in every way,
    in steps of epsilon times the largest. Rows that overload the node are removed, with its local drops applied.

    Args:
        program: Of the whole network.
        operators: Numbers of the node's sources, each after what it reads; shape (operators,).
        rows: A table whose dimensions include all arcs that leave the node.
        epsilon: Relative size of the steps.

    Returns:
        The table, and the load of its rows as a share of the node's capacity; shape (rows,).

    Raises:
        TooManyRows: the table exceeds its limit.

    Source: FIT, section 6.3.
    """
    wiring = program.wiring
    column = {int(arc): np.ascontiguousarray(rows.rates[:, at]) for at, arc in enumerate(rows.dimensions)}
    chosen: Indices | None = None
    for operator in operators[::-1]:
        of = _add_inputs(wiring, int(operator), column, epsilon, most)
        if of is not None:
            chosen = of if chosen is None else chosen[of]
    rows = rows if chosen is None else rows.only(chosen)
    into = np.flatnonzero(np.isin(wiring.target, operators))
    load = np.zeros(len(rows))
    for arc in into:
        load += wiring.use[node, arc] / program.limits[node] * column[int(arc)]
    fits = np.flatnonzero(load <= 1 + 1e-12)
    kept = rows if len(fits) == len(rows) else rows.only(fits)
    mine = np.isin(wiring.source, operators)
    variables = np.flatnonzero(mine[program.drop_arcs])
    flows = kept.flows.copy() if len(variables) else kept.flows
    for variable in variables:
        flows[:, variable] = column[int(program.drop_arcs[variable])][fits]
    passing = ~mine[rows.dimensions]
    entering = into[~mine[into]]
    dimensions = np.concatenate((entering, rows.dimensions[passing]))
    rates = np.empty((len(fits), len(dimensions)))
    for at, arc in enumerate(dimensions):
        rates[:, at] = column[int(arc)] if kept is rows else column[int(arc)][fits]
    return FitRows(dimensions, rates, kept.scores, flows), load[fits]


def _add_inputs(wiring: Wiring, operator: int, column: dict[int, Floats], epsilon: float, most: int) -> Indices | None:
    """Add an operator's required input to the rates of arcs, shape (rows,) each (FIT, section 6.3).

    Returns:
        None; or, where inputs can be combined in several ways, the old row of each new one, with arcs given by new
            rows.
    """
    out = wiring.arcs_of(operator)
    needed = column[out.start]
    for other in range(out.start + 1, out.stop):
        needed = np.maximum(needed, column[other])
    reading = np.flatnonzero(wiring.target == operator)
    arcs = [int(arc) for arc in reading if wiring.gain[arc] > 0]
    chosen: Indices | None = None
    if not arcs and needed.any():  # an operator that emits nothing
        chosen = np.flatnonzero(needed == 0)
        needed = needed[chosen]
        for other in column:
            column[other] = column[other][chosen]
    for arc in arcs[:-1]:
        part, of = _divided(needed, epsilon * needed.max(initial=0.0), most)
        for other in column:
            column[other] = column[other][of]
        chosen = of if chosen is None else chosen[of]
        column[arc] = part / wiring.gain[arc]
        needed = needed[of] - part
    if arcs:
        gain = wiring.gain[arcs[-1]]
        column[arcs[-1]] = needed if gain == 1 else needed / gain
    for read in reading:
        column.setdefault(int(read), np.zeros(len(needed)))
    return chosen


def _divided(amounts: Floats, step: float, most: int) -> tuple[Floats, Indices]:
    """Each amount counted down to 0 in steps, with the row of each part."""
    if step == 0:
        return amounts, np.arange(len(amounts))
    counts = np.where(amounts > 0, np.ceil(amounts / step - 1e-9) + 1, 1).astype(np.int64)
    if counts.sum() > most:
        raise TooManyRows
    of = np.repeat(np.arange(len(amounts)), counts)
    number = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.maximum(amounts[of] - number * step, 0.0), of
