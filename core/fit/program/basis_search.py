"""Compiled search for a basis that is optimal at given rates."""

from typing import NamedTuple

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.fit.network.wiring import Indices

TOLERANCE = 1e-10
"""Tolerance of bounds, with limits scaled near 1; that of the solver."""


class Pool(NamedTuple):
    """Bases by their dual solutions, as arrays for the kernel."""

    vertices: Floats  # per dual solution: score, then slope per dimension; shape (1 + dimensions, ..)
    first: Indices  # the first basis of each dual solution
    following: Indices  # the next basis of the same dual solution; -1: none
    values: Floats  # per basis: its variables as functions of the dimensions
    line_count: Indices  # number of its variables to check
    variable: Indices  # their numbers; -1: a slack
    upper: Indices  # whether each variable is at its upper bound


class Variables(NamedTuple):
    """The variables of the program and of its presolved form.

    See `Merged` and `Program`.
    """

    dimension_of: Indices
    height: Floats
    column_of: Indices
    input_of: Indices
    unit: Floats
    weights: Floats


@inlined
def _fits(
    reduced: Floats, values: Floats, lines: int, variable: Indices, dimension_of: Indices, height: Floats, taken: Floats
) -> bool:
    """Whether a basis is optimal at a point; its variables are left in `taken`."""
    for line in range(lines):
        taken[line] = values[0, line]
    for dimension in range(len(reduced)):
        rate = reduced[dimension]
        for line in range(lines):
            taken[line] += rate * values[dimension + 1, line]
    for line in range(lines):
        if taken[line] < -TOLERANCE:
            return False
        column = variable[line]
        if column >= 0:
            dimension = dimension_of[column]
            if dimension >= 0 and taken[line] > reduced[dimension] * height[column] + TOLERANCE:
                return False
    return True


@compiled
def plan_points(
    rates: Floats,
    reduced_rates: Floats,
    points: Indices,
    pool: Pool,
    vertex_count: int,
    variables: Variables,
    last: int,
    flows: Floats,
    scores: Floats,
    found: Indices,
) -> int:
    """Plan points by the last basis, then the best dual solutions.

    Returns:
        The basis used last.
    """
    vertices, first, following, values, line_count, variable, upper = pool
    dimension_of, height, column_of, input_of, unit, weights = variables
    columns = len(dimension_of)
    taken, duals = np.empty(values.shape[2]), np.empty(max(vertex_count, 1))
    value, bound = np.empty(columns), np.empty(columns)
    for at in points:
        reduced = reduced_rates[at]
        basis = -1
        if last >= 0 and _fits(reduced, values[last], line_count[last], variable[last], dimension_of, height, taken):
            basis = last
        elif vertex_count > 0:
            for vertex in range(vertex_count):
                duals[vertex] = vertices[0, vertex]
            for dimension in range(len(reduced)):
                rate = reduced[dimension]
                for vertex in range(vertex_count):
                    duals[vertex] += rate * vertices[dimension + 1, vertex]
            lowest = 0
            for vertex in range(1, vertex_count):
                if duals[vertex] < duals[lowest]:
                    lowest = vertex
            # At points where dual solutions tie, rounding picks any of them.
            near = duals[lowest] + 1e-12 * abs(duals[lowest]) + 1e-14
            for offset in range(vertex_count):
                vertex = (lowest + offset) % vertex_count
                if duals[vertex] > near:
                    continue
                trial = first[vertex]
                while trial >= 0:
                    if _fits(reduced, values[trial], line_count[trial], variable[trial], dimension_of, height, taken):
                        basis = trial
                        break
                    trial = following[trial]
                if basis >= 0:
                    break
        found[at] = basis
        if basis < 0:
            continue
        last = basis
        for column in range(columns):
            dimension = dimension_of[column]
            bound[column] = reduced[dimension] * height[column] if dimension >= 0 else np.inf
            value[column] = bound[column] if upper[basis, column] else 0.0
        for line in range(line_count[basis]):
            column = variable[basis, line]
            if column >= 0:
                value[column] = min(max(taken[line], 0.0), bound[column])
        score = 0.0
        for arc in range(len(column_of)):
            column = column_of[arc]
            if input_of[arc] < 0:
                flow = value[column] * unit[arc]
            elif value[column] >= bound[column]:
                flow = rates[at, input_of[arc]]
            else:
                flow = value[column] / bound[column] * rates[at, input_of[arc]]
            flows[at, arc] = flow
            score += weights[arc] * flow
        scores[at] = score
    return last
