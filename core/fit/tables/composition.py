"""Children's tables: composed, covered, mapped to their parent's inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.tables.local_plans import Part
from adapt.core.fit.tables.rows import FitRows, TooManyRows, beside

WORK = 100_000_000
"""Comparisons of two numbers after which all rows that are left stay."""


def covered(coordinates: Floats, scores: Floats, loss: float) -> Indices:
    """Rows that represent all others, within a loss of score.

    Each row has one at or below it that scores almost as much.

    The best row that nothing represents so far chooses its representative: among rows with at most its coordinates and
    at least (1 - loss) of its score, the one with the lowest score. Representatives stay, so no loss adds up here.

    Args:
        coordinates: What must not rise, shape (rows, coordinates).
        scores: At least 0, shape (rows,).
        loss: Share of its score that a row may lose, in [0, 1). 0: only dominated rows go.

    Returns:
        The rows that stay, ascending.

    Source: FIT, section 6.3, whose tactics for similar rows have no bound.
    """
    order = np.lexsort((coordinates.sum(axis=1), -scores))
    ranked, ordered = np.ascontiguousarray(coordinates[order]), np.ascontiguousarray(scores[order])
    ends = np.searchsorted(-ordered, -(1 - loss) * ordered, "right")  # at least this share: the rows before
    stays = np.zeros(len(order), np.bool_)
    _cover(ranked, ordered, ends, 1 - loss, WORK, stays, np.empty(len(order), np.int64))
    return np.sort(order[stays])


@compiled
def _cover(
    rates: Floats, scores: Floats, ends: Indices, share: float, work: int, stays: NDArray[np.bool_], kept: Indices
) -> None:
    """Choose representatives of rows by descending score."""
    rows, axes = rates.shape
    number = 0
    for row in range(rows):
        found = False
        for back in range(number):
            other = kept[number - 1 - back]
            found = scores[other] >= share * scores[row]
            if found:
                for axis in range(axes):
                    work -= 1
                    if rates[other, axis] > rates[row, axis]:
                        found = False
                        break
            if found:
                break
        if found:
            continue
        chosen = row
        for other in range(ends[row] - 1, row, -1):
            below = True
            for axis in range(axes):
                work -= 1
                if rates[other, axis] > rates[row, axis]:
                    below = False
                    break
            if below:
                chosen = other
                break
        stays[chosen] = True
        kept[number] = chosen
        number += 1
        if work < 0:
            stays[row:] = True
            return


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


TRIED = 20
"""Combinations of two tables to try, as a multiple of the rows that a table may have."""


@dataclass(frozen=True, slots=True, eq=False)
class _Need:
    """Rows of some children, with what they need of their parent."""

    rows: FitRows
    needs: Floats  # rates on the arcs to the parent's operators, tuples/s, shape (rows, carrying arcs)


def composed(part: Part, tables: Sequence[FitRows], similar: float, most: int, apart: bool) -> FitRows:
    """Combinations of rows that fit, without those that others represent.

    Tables are combined in pairs, and pairs of pairs, without unions and joins: there, an arc needs the largest of the
    rates that its readers need. A combination goes as soon as it overloads the node, or if another one needs no more
    and scores almost as much: not more on arcs that enter the node or that tables still to come read too, and not more
    load on the others. With the same rows of the tables still to come, the other one then fits too.

    Args:
        part: Their parent.
        tables: Over arcs that leave it.
        similar: Share of its score that a row may lose altogether.
        apart: Whether the node also works for other tables.

    Source: FIT, section 6.3, on several children.
    """
    arcs = part.arcs[carrying(part)]
    frontier = [_need(part, table, arcs) for table in tables]
    loss = similar / max(ceil(log2(len(tables))), 1)
    while len(frontier) > 1:
        following = []
        for at in range(0, len(frontier), 2):
            others = [each for other, each in enumerate(frontier) if other // 2 != at // 2]
            pair = frontier[at : at + 2]
            following.append(_pair(part, (pair[0], pair[1]), others, loss, most, apart) if len(pair) == 2 else pair[0])
        frontier = following
    return frontier[0].rows


def _need(part: Part, table: FitRows, arcs: Indices) -> _Need:
    rows, needs = needed_rates(part, table, 1.0, len(table))
    return _Need(rows, np.stack([needs[int(arc)] for arc in arcs], axis=1))


def _pair(part: Part, pair: tuple[_Need, _Need], others: Sequence[_Need], loss: float, most: int, apart: bool) -> _Need:
    one, other = pair
    if len(one.rows) * len(other.rows) > TRIED * most:
        raise TooManyRows
    uses = loads_of(part)
    first, second = (picked.reshape(-1) for picked in np.indices((len(one.rows), len(other.rows))))
    load = np.zeros(len(first))
    for arc, use in enumerate(uses):
        load += use * np.maximum(one.needs[first, arc], other.needs[second, arc])
    fits = load <= FITS
    for shared in one.rows.loads.keys() & other.rows.loads.keys():
        fits &= one.rows.loads[shared][first] + other.rows.loads[shared][second] <= FITS
    first, second = first[fits], second[fits]
    needs = np.maximum(one.needs[first], other.needs[second])
    rows = beside((one.rows.only(first), other.rows.only(second)))
    entering = np.isin(part.arcs[carrying(part)], part.entering)
    shared_arcs = np.any([each.needs.any(axis=0) for each in others], axis=0) if others else np.zeros_like(entering)
    watched = entering | shared_arcs
    coordinates = [needs[:, watched], rows.rates[:, ~np.isin(rows.dimensions, part.leaving)]]
    coordinates += [load[:, None] for load in rows.loads.values()]
    if (others or apart) and uses[~watched].any():
        coordinates.append((needs[:, ~watched] @ uses[~watched])[:, None])
    if loss == 0 and not (one.needs.any(axis=0) & other.needs.any(axis=0)).any():
        stays = np.arange(len(rows))  # of combinations of rates that have nothing to do with each other, none goes
    else:
        stays = covered(np.concatenate(coordinates, axis=1), rows.scores, loss)
    if len(stays) > most:
        raise TooManyRows
    return _Need(rows.only(stays), needs[stays])
