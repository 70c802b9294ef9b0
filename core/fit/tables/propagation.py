"""Maps tables of children back to the inputs of their parent."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.tables.local_plans import Part
from adapt.core.fit.tables.rows import FitRows, TooManyRows

FITS = 1 + 1e-12
"""Utilization up to which a node is not overloaded."""


def mapped_back(part: Part, rows: FitRows, epsilon: float, most: int, entering: Indices | None = None) -> FitRows:
    """A table over a node's outputs, turned into one over its inputs.

    Along a path, rates are divided by selectivities. A split must supply the largest rate that a branch takes, and the
    other branches drop the rest. The rate that a union or join must supply is divided between its inputs in every way,
    in steps of epsilon times the largest. Rows that overload the node are removed, with its local drops applied.

    Args:
        rows: A table whose dimensions include arcs that leave the node; nothing goes to the others.
        epsilon: Relative size of the steps.
        entering: The entering arcs of the new table, where others have tables of their own; None: all.

    Source: FIT, section 6.3.
    """
    rows, needs = needed_rates(part, rows, epsilon, most)
    load = np.zeros(len(rows))
    for arc, use in zip(part.arcs[carrying(part)].tolist(), loads_of(part), strict=True):
        load += use * needs[arc]
    fits = np.flatnonzero(load <= FITS)
    kept = rows if len(fits) == len(rows) else rows.only(fits)
    inside = part.drops
    if entering is not None:
        units = part.program.wiring.unshed(np.eye(part.program.inputs))[np.isin(part.entering, entering)]
        inside = inside[np.isin(inside, part.arcs[units.any(axis=0)])]
    own = np.array([needs[int(arc)][fits] for arc in inside]).reshape(len(inside), len(fits))
    drops, flows = np.concatenate((kept.drops, inside)), np.concatenate((kept.flows, own.T), axis=1)
    arcs = part.entering if entering is None else entering
    dimensions = np.concatenate((arcs, rows.dimensions[~np.isin(rows.dimensions, part.leaving)]))
    rates = np.empty((len(fits), len(dimensions)))
    for at, arc in enumerate(dimensions):
        rates[:, at] = needs[int(arc)] if kept is rows else needs[int(arc)][fits]
    loads = kept.loads if entering is None else {**kept.loads, part.node: load[fits]}
    return FitRows(dimensions, rates, kept.scores, drops, flows, loads)


def needed_rates(part: Part, rows: FitRows, epsilon: float, most: int) -> tuple[FitRows, dict[int, Floats]]:
    """The rates that rows need on every arc of a node.

    Returns:
        The rows, several times where a union or join can be fed in several ways; and the rates by arc, shape (rows,)
            each.
    """
    wiring = part.program.wiring
    column = {int(arc): np.zeros(len(rows)) for arc in part.leaving}
    column |= {int(arc): np.ascontiguousarray(rows.rates[:, at]) for at, arc in enumerate(rows.dimensions)}
    chosen: Indices | None = None
    for operator in range(len(wiring.network.sources) - 1, wiring.inputs - 1, -1):
        of = _add_inputs(part, operator, column, epsilon, most)
        if of is not None:
            chosen = of if chosen is None else chosen[of]
    return rows if chosen is None else rows.only(chosen), column


def loads_of(part: Part) -> Floats:
    """Utilization per tuple/s on each carrying arc; shape (carrying,)."""
    wiring = part.program.wiring
    return np.asarray(wiring.use[0, carrying(part)] / wiring.limits[0])


def carrying(part: Part) -> Indices:
    """Places of a node's arcs that carry to its operators."""
    return np.flatnonzero(part.program.wiring.target >= 0)


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
