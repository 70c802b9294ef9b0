"""Composed tables of several children, without rows that others represent."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.tables.cover import covered
from adapt.core.fit.tables.local_plans import Part
from adapt.core.fit.tables.propagation import FITS, carrying, loads_of, needed_rates
from adapt.core.fit.tables.rows import FitRows, TooManyRows, beside

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
