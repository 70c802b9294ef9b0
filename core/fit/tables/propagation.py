"""Maps tables of children back to the inputs of their parent."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.tables.local_plans import Part
from adapt.core.fit.tables.rows import FitRows, TooManyRows


def mapped_back(part: Part, rows: FitRows, epsilon: float, most: int) -> tuple[FitRows, Floats]:
    """A table over a node's outputs, turned into one over its inputs.

    Along a path, rates are divided by selectivities. A split must supply the largest rate that a branch takes, and the
    other branches drop the rest. The rate that a union or join must supply is divided between its inputs in every way,
    in steps of epsilon times the largest. Rows that overload the node are removed, with its local drops applied.

    Args:
        rows: A table whose dimensions include all arcs that leave the node.
        epsilon: Relative size of the steps.

    Returns:
        The table, and the load of its rows as a share of the node's capacity; shape (rows,).

    Raises:
        TooManyRows: the table exceeds its limit.

    Source: FIT, section 6.3.
    """
    wiring = part.program.wiring
    column = {int(arc): np.ascontiguousarray(rows.rates[:, at]) for at, arc in enumerate(rows.dimensions)}
    chosen: Indices | None = None
    for operator in range(len(wiring.network.sources) - 1, wiring.inputs - 1, -1):
        of = _add_inputs(part, operator, column, epsilon, most)
        if of is not None:
            chosen = of if chosen is None else chosen[of]
    rows = rows if chosen is None else rows.only(chosen)
    load = np.zeros(len(rows))
    for arc in np.flatnonzero(wiring.target >= 0):
        load += wiring.use[0, arc] / wiring.limits[0] * column[int(part.arcs[arc])]
    fits = np.flatnonzero(load <= 1 + 1e-12)
    kept = rows if len(fits) == len(rows) else rows.only(fits)
    own = np.array([column[int(arc)][fits] for arc in part.drops]).reshape(len(part.drops), len(fits))
    drops, flows = np.concatenate((kept.drops, part.drops)), np.concatenate((kept.flows, own.T), axis=1)
    dimensions = np.concatenate((part.entering, rows.dimensions[~np.isin(rows.dimensions, part.leaving)]))
    rates = np.empty((len(fits), len(dimensions)))
    for at, arc in enumerate(dimensions):
        rates[:, at] = column[int(arc)] if kept is rows else column[int(arc)][fits]
    return FitRows(dimensions, rates, kept.scores, drops, flows), load[fits]


def _add_inputs(part: Part, operator: int, column: dict[int, Floats], epsilon: float, most: int) -> Indices | None:
    """Add an operator's required input to the rates of arcs, shape (rows,) each (FIT, section 6.3).

    Returns:
        None; or, where inputs can be combined in several ways, the old row of each new one, with arcs given by new
            rows.
    """
    wiring = part.program.wiring
    first, *others = map(int, part.arcs[wiring.arcs_of(operator)])
    needed = column[first]
    for other in others:
        needed = np.maximum(needed, column[other])
    reading = {int(part.arcs[arc]): float(wiring.gain[arc]) for arc in np.flatnonzero(wiring.target == operator)}
    arcs = [arc for arc in sorted(reading) if reading[arc] > 0]
    chosen: Indices | None = None
    if not arcs and needed.any():  # an operator that emits nothing
        chosen = np.flatnonzero(needed == 0)
        needed = needed[chosen]
        for other in column:
            column[other] = column[other][chosen]
    for arc in arcs[:-1]:
        taken, of = _divided(needed, epsilon * needed.max(initial=0.0), most)
        for other in column:
            column[other] = column[other][of]
        chosen = of if chosen is None else chosen[of]
        column[arc] = taken / reading[arc]
        needed = needed[of] - taken
    if arcs:
        gain = reading[arcs[-1]]
        column[arcs[-1]] = needed if gain == 1 else needed / gain
    for read in reading:
        column.setdefault(read, np.zeros(len(needed)))
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
