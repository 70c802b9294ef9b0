"""The table of a leaf: rates on a grid, with local plans."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.tables.drop_order import DropOrder
from adapt.core.fit.tables.local_plans import Part
from adapt.core.fit.tables.rows import FitRows, TooManyRows
from adapt.core.fit.tables.spacing import GridLines


@dataclass(frozen=True, slots=True, eq=False)
class Triangle:
    """The feasibility triangle: rates that need no plan anywhere (FIT, section 6.2)."""

    corners: Floats  # the highest rate of each arc alone that needs no drops, shape (dimensions,)
    margin: bool  # whether rates within a cell of the edge are kept; without it some points have no plan


def highest_rates(order: DropOrder, reach: Floats) -> Floats:
    """The highest rate of each arc that a leaf can accept.

    That is the rate of the arc alone, with all drops applied, if that much can arrive.

    Args:
        order: How the arcs of the leaf close, without roots.
        reach: Upper bounds of the arriving rates, shape (dimensions,).
    """
    with np.errstate(divide="ignore"):
        alone = np.where(order.loads[-1] > 0, order.limit / order.loads[-1], np.inf)
    return np.minimum(alone, reach)


def leaf_rows(
    part: Part,
    order: DropOrder,
    lines: GridLines,
    triangle: Triangle | None,
    max_rows: int,
) -> FitRows:
    """The table of a leaf.

    Args:
        order: How its arcs close, without roots.
        lines: The rates of each arc.
        triangle: Rates to omit, if any.

    Returns:
        Rows with ascending rates.

    Source: FIT, section 6.2.
    """
    rates = feasible_grid(lines, order.loads[-1], order.limit, triangle, max_rows)
    variables, _ = order.plan(rates)
    return FitRows(part.entering, rates, variables @ part.program.weights, part.drops, variables[:, part.splits])


def feasible_grid(grid: GridLines, loads: Floats, limit: float, triangle: Triangle | None, max_rows: int) -> Floats:
    """Grid points that fit, outside the triangle; shape (points, dimensions)."""
    counts = np.array([len(rates) for rates in grid.rates], np.int64)
    lines = np.zeros((len(counts), counts.max(initial=1)))
    for axis, rates in enumerate(grid.rates):
        lines[axis, : counts[axis]] = rates
    edge, margin = np.zeros(len(counts)), 0.0
    if triangle is not None:
        edge = 1 / triangle.corners
        margin = float(grid.widths @ edge) if triangle.margin else 0.0
    below = -1.0
    if triangle is not None:  # cells that fit need no row; without a margin, the edge itself has rows
        below = 1 + 1e-12 - margin if triangle.margin else 1 - 1e-12
    allowed = limit * (1 + 1e-12)
    number = _walk(lines, counts, loads, allowed, edge, below, max_rows, np.empty((0, len(counts))))
    if number > max_rows:
        raise TooManyRows
    points = np.empty((number, len(counts)))
    _walk(lines, counts, loads, allowed, edge, below, max_rows, points)
    return points


@compiled
def _walk(
    lines: Floats, counts: Indices, loads: Floats, limit: float, edge: Floats, below: float, most: int, out: Floats
) -> int:
    """Count grid points that fit outside the triangle, up to `most` + 1; write them if there is room."""
    axes = len(counts)
    if axes == 0:
        return 0
    at = np.zeros(axes, np.int64)
    load, height = np.zeros(axes + 1), np.zeros(axes + 1)
    found, axis = 0, 0
    while axis >= 0:
        fits = at[axis] < counts[axis]
        if fits:
            rate = lines[axis, at[axis]]
            load[axis + 1] = load[axis] + loads[axis] * rate
            height[axis + 1] = height[axis] + edge[axis] * rate
            fits = load[axis + 1] <= limit
        if not fits:
            axis -= 1
            if axis >= 0:
                at[axis] += 1
            continue
        if axis < axes - 1:
            axis += 1
            at[axis] = 0
            continue
        if height[axes] > below:
            if len(out) > 0:
                for other in range(axes):
                    out[found, other] = lines[other, at[other]]
            found += 1
            if found > most:
                return found
        at[axis] += 1
    return found
