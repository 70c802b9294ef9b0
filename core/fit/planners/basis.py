"""Optimal bases: values, prices, and a compiled search."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.highs import Merged, WarmSolver
from adapt.core.fit.planners.program import Program

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


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """The solution of a presolved program where one basis is optimal."""

    inside: Indices  # its basic variables; from the number of columns on, slacks of rows. Shape (rows,)
    upper: NDArray[np.bool_]  # whether each other variable is at its upper bound, shape (columns,)
    lines: Floats  # the basic variables: constants, then slopes in the dimensions; shape (rows, 1 + dimensions)
    prices: Floats  # shadow prices of the rows, shape (rows,)
    dual: Floats  # the best score: constant, then slopes in the dimensions; shape (1 + dimensions,)

    @classmethod
    def from_solver(cls, merged: Merged, basic: NDArray[np.bool_], at_upper: NDArray[np.bool_]) -> "Basis | None":
        """The basis that a solver ended with; None if it is singular.

        Args:
            basic: Whether each variable, then each slack, is basic.
            at_upper: Whether each variable is at its upper bound.
        """
        scaled, columns = merged.scaled, len(at_upper)
        inside = np.flatnonzero(basic)
        try:
            inverse = np.linalg.inv(np.concatenate((scaled.rows, np.eye(len(scaled.limits))), axis=1)[:, inside])
        except np.linalg.LinAlgError:
            return None
        worth = np.append(scaled.weights, np.zeros(len(scaled.limits)))[inside]
        # Where both bounds are 0, the solver may report either one; the reduced cost decides.
        gained = scaled.weights - (worth @ inverse) @ scaled.rows
        upper = (gained > TOLERANCE) | ((gained > -TOLERANCE) & at_upper)
        upper &= ~basic[:columns] & (merged.dimension_of >= 0)
        held = np.flatnonzero(upper)
        per_rate = np.zeros((columns, merged.dimensions))
        per_rate[held, merged.dimension_of[held]] = merged.height[held]
        lines = np.concatenate(((inverse @ scaled.limits)[:, None], -inverse @ (scaled.rows @ per_rate)), axis=1)
        lines[np.abs(lines) < 1e-15 * np.abs(lines).max(axis=1, keepdims=True, initial=0.0)] = 0.0
        dual = worth @ lines
        dual[1:] += scaled.weights @ per_rate
        return cls(inside, upper, lines, worth @ inverse, dual)

    def values(self, merged: Merged) -> Floats:
        """All variables: constants, then slopes in the dimensions.

        Shape (columns, 1 + dimensions).
        """
        columns = len(self.upper)
        values = np.zeros((columns, 1 + merged.dimensions))
        held = np.flatnonzero(self.upper)
        values[held, 1 + merged.dimension_of[held]] = merged.height[held]
        own = self.inside < columns
        values[self.inside[own]] = self.lines[own]
        return values


MAX_BASES = 2000
"""Pool size beyond which a search takes longer than solving."""


class BasisPool:
    """The best flows for batches of rates.

    A basis that is optimal for some rates is dual feasible for all, since rates appear only in bounds. So it is optimal
    wherever its variables, linear functions of the rates, are within their bounds. Its dual solution, also linear in
    the rates, is an upper bound of the best score. For each point, the pool takes the lowest dual solution seen so far;
    one of its bases is optimal unless the pool lacks the optimal one. In that case the program is solved, and its basis
    joins the pool.

    Which of several best plans is found may depend on the points planned before; the score does not. Identical inputs
    keep the same share.

    Source: sensitivity analysis of linear programs; FIT samples the rates instead.
    """

    def __init__(self, program: Program, most: int = MAX_BASES) -> None:
        self.program = program
        self.solved = 0
        """Number of linear programs solved."""
        self._most = most
        self.merged = merged = Merged.from_program(program)
        self.known: list[Basis] = []
        """The bases of the pool."""
        self._solver = WarmSolver(merged.scaled)
        rows, columns = merged.scaled.rows.shape
        self._seen: set[bytes] = set()
        self._last = -1
        self._vertex_count = 0
        self._pool = Pool(
            vertices=np.zeros((merged.dimensions + 1, 8)),
            first=np.full(8, -1, np.int64),
            following=np.full(8, -1, np.int64),
            values=np.zeros((8, merged.dimensions + 1, max(rows, 1))),
            line_count=np.zeros(8, np.int64),
            variable=np.zeros((8, max(rows, 1)), np.int64),
            upper=np.zeros((8, columns), np.int64),
        )
        self._variables = Variables(
            dimension_of=merged.dimension_of,
            height=merged.height,
            column_of=merged.column_of,
            input_of=program.input_of,
            unit=merged.unit,
            weights=program.weights,
        )

    @property
    def bases(self) -> int:
        """Number of bases in the pool."""
        return len(self.known)

    @property
    def vertices(self) -> int:
        """Number of distinct dual solutions."""
        return self._vertex_count

    def plan(self, rates: Floats) -> tuple[Floats, Floats]:
        """The best flows and scores for some rates.

        Args:
            rates: Tuples/s, finite and at least 0, shape (points, inputs).

        Returns:
            Flows of shape (points, variables), and scores of shape (points,).
        """
        rates = np.ascontiguousarray(rates, dtype=np.float64)
        flows, scores = np.empty((len(rates), len(self.program.drop_arcs))), np.empty(len(rates))
        found = np.full(len(rates), -1, np.int64)
        self._search(rates, np.arange(len(rates)), self._vertex_count, flows, scores, found)
        missing = np.flatnonzero(found < 0)
        while len(missing):
            point = missing[0]
            flows[point] = self.merged.flows(rates[point], self._solver.values(self.merged.upper(rates[point])))
            scores[point] = flows[point] @ self.program.weights
            self.solved += 1
            missing = missing[1:]
            if self.bases < self._most and self._keep(*self._solver.basis()):
                self._last = self.bases - 1
                self._search(rates, missing, 0, flows, scores, found)
                missing = missing[found[missing] < 0]
        return flows, scores

    def _search(
        self, rates: Floats, points: Indices, vertices: int, flows: Floats, scores: Floats, found: Indices
    ) -> None:
        """Plan points by the last basis, then by those of the first dual solutions; skip what none fits."""
        reduced = rates @ self.merged.rays.T
        pool, variables = self._pool, self._variables
        self._last = plan_points(rates, reduced, points, pool, vertices, variables, self._last, flows, scores, found)

    def _keep(self, basic: NDArray[np.bool_], at_upper: NDArray[np.bool_]) -> bool:
        """Add a basis; false if it is known or singular."""
        basis = Basis.from_solver(self.merged, basic, at_upper)
        if basis is None:
            return False
        name = basis.inside.tobytes() + basis.upper.tobytes()
        if name in self._seen:
            return False
        self._seen.add(name)
        self.known.append(basis)
        # A slack that cannot fall below 0 needs no check.
        column = basis.inside < len(basis.upper)
        watched = column | (basis.lines < 0).any(axis=1)
        variable = np.where(column, basis.inside, -1)
        self._store(variable[watched], basis.lines[watched], basis.dual, basis.upper)
        return True

    def _store(self, variable: Indices, lines: Floats, dual: Floats, upper: NDArray[np.bool_]) -> None:
        if self.bases > len(self._pool.following):
            pool = self._pool
            self._pool = pool._replace(
                following=_doubled(pool.following, -1),
                values=_doubled(pool.values, 0),
                line_count=_doubled(pool.line_count, 0),
                variable=_doubled(pool.variable, 0),
                upper=_doubled(pool.upper, 0),
            )
        at = self.bases - 1
        vertex = self._vertex(dual)
        pool = self._pool
        pool.values[at, :, : len(lines)] = lines.T
        pool.line_count[at] = len(lines)
        pool.variable[at, : len(lines)] = variable
        pool.upper[at] = upper
        pool.following[at], pool.first[vertex] = pool.first[vertex], at

    def _vertex(self, dual: Floats) -> int:
        """The number of a dual solution, added if it is new."""
        known = self._pool.vertices[:, : self._vertex_count]
        size = np.abs(dual).max(initial=0.0)
        same = np.flatnonzero(
            (np.abs(known - dual[:, None]) <= 1e-11 * np.maximum(np.abs(dual[:, None]), size)).all(axis=0)
        )
        if len(same):
            return int(same[0])
        if self._vertex_count == len(self._pool.first):
            vertices = np.concatenate((self._pool.vertices, np.zeros_like(self._pool.vertices)), axis=1)
            self._pool = self._pool._replace(first=_doubled(self._pool.first, -1), vertices=vertices)
        self._pool.vertices[:, self._vertex_count] = dual
        self._vertex_count += 1
        return self._vertex_count - 1


def _doubled(array: NDArray[Any], filler: int) -> NDArray[Any]:
    return np.concatenate((array, np.full_like(array, filler)))
