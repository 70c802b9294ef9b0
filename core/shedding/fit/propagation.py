"""What a node's inputs must bring so that it gives given rates: how the tables of children become their parent's."""

import numpy as np

from adapt.core.resources.functions import Floats
from adapt.core.shedding.fit.rows import FitRows, TooManyRows
from adapt.core.shedding.wiring import Indices, Wiring


def mapped_back(wiring: Wiring, operators: Indices, rows: FitRows, epsilon: float, most: int) -> FitRows:
    """A table over what leaves a node as one over what enters it.

    Along a path a rate is divided by the selectivities. A split must give the most that a branch takes, and the other
    branches drop the rest. What a union or join must give is divided between its inputs in every way, by steps of
    epsilon times the largest. What overloads the node is
    not looked at.

    Args:
        wiring: The whole network.
        operators: Numbers of the sources that the node runs, in order; shape (operators,).
        rows: A table whose dimensions hold all arcs that leave the node.
        epsilon: Of the steps.
        most: Rows there may be.

    Raises:
        TooManyRows: there are more.

    Source: FIT, section 6.3.
    """
    mine = np.isin(wiring.source, operators)
    entering = np.flatnonzero(np.isin(wiring.target, operators) & ~mine)
    rows = FitRows(rows.dimensions, rows.rates, rows.scores, rows.flows.copy())
    for operator in operators[::-1]:
        rows = _through(wiring, int(operator), rows, epsilon, most)
    passing = ~mine[rows.dimensions]
    return FitRows(
        np.concatenate((entering, rows.dimensions[passing])),
        np.concatenate((rows.flows[:, entering], rows.rates[:, passing]), axis=1),
        rows.scores,
        rows.flows,
    )


def _through(wiring: Wiring, operator: int, rows: FitRows, epsilon: float, most: int) -> FitRows:
    """What one operator must get on its inputs, written to the rows' flows; more rows if there are several ways."""
    needed = rows.flows[:, wiring.arcs_of(operator)].max(axis=1, initial=0.0)
    arcs = np.flatnonzero((wiring.target == operator) & (wiring.gain > 0))
    for arc in arcs[:-1]:
        part, of = _parts(needed, epsilon * needed.max(initial=0.0), most)
        rows = rows.only(of)
        rows.flows[:, arc] = part / wiring.gain[arc]
        needed = needed[of] - part
    if len(arcs):
        rows.flows[:, arcs[-1]] = needed / wiring.gain[arcs[-1]]
    return rows


def _parts(amounts: Floats, step: float, most: int) -> tuple[Floats, Indices]:
    """Each amount counted down to 0 by a step, and the row that each part is of."""
    counts = np.where(amounts > 0, np.ceil(amounts / step - 1e-9) + 1, 1).astype(np.int64) if step > 0 else None
    if counts is None:
        return amounts, np.arange(len(amounts))
    if counts.sum() > most:
        raise TooManyRows
    of = np.repeat(np.arange(len(amounts)), counts)
    number = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.maximum(amounts[of] - number * step, 0.0), of
