"""A pool of bases that were optimal once: exact plans for any rates at the price of a few small products."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.highs import WarmSolver
from adapt.core.fit.program.lp_presolve import Merged
from adapt.core.fit.program.program import Program
from adapt.core.partitioning.measures.resources import Floats

MOST_BASES = 2000
"""A larger pool takes longer to search than the solver to solve."""

_TOLERANCE = 1e-10
"""How far a variable may lie past its bound, where limits are about 1: what the solver itself allows."""


class BasisPool:
    """The best flows for batches of rates.

    A basis that is optimal for some rates is dual feasible for all, since rates are bounds and nothing else. So it is
    optimal wherever its variables, linear functions of the rates, are within their bounds. And its dual solution, a
    linear function of the rates too, is nowhere below the best score. Hence for each point: of the dual solutions
    seen so far the lowest, one of whose bases is optimal unless the pool lacks the one that is; then the program is
    solved, and its basis kept.

    Of several best plans, which one is found may depend on the points that were planned before; the score does not.
    Inputs that are alike keep the same share.

    Source: sensitivity analysis of linear programs; FIT samples the rates instead.
    """

    def __init__(self, program: Program, most: int = MOST_BASES) -> None:
        self.program = program
        self.solved = 0
        """Linear programs that were solved."""
        self._most = most
        self._merged = merged = Merged.of(program)
        self._solver = WarmSolver(merged.scaled)
        rows, columns = merged.scaled.rows.shape
        self._every = np.concatenate((merged.scaled.rows, np.eye(rows)), axis=1)
        self._seen: set[bytes] = set()
        self._last = -1
        self._vertices = np.zeros((merged.dimensions + 1, 8))
        self._vertex_count = self._basis_count = 0
        self._first = np.full(8, -1, np.int64)
        self._next = np.full(8, -1, np.int64)
        self._values = np.zeros((8, merged.dimensions + 1, max(rows, 1)))
        self._line_count = np.zeros(8, np.int64)
        self._variable = np.zeros((8, max(rows, 1)), np.int64)
        self._upper = np.zeros((8, columns), np.int64)

    @property
    def bases(self) -> int:
        """How many are kept."""
        return self._basis_count

    @property
    def vertices(self) -> int:
        """How many dual solutions they have together."""
        return self._vertex_count

    def plan(self, rates: Floats) -> tuple[Floats, Floats]:
        """The best flows, shape (points, variables), and their scores, shape (points,).

        Args:
            rates: Tuples/s, finite and from 0 up, shape (points, inputs).
        """
        rates = np.ascontiguousarray(rates, dtype=np.float64)
        flows, scores = np.empty((len(rates), len(self.program.drop_arcs))), np.empty(len(rates))
        found = np.full(len(rates), -1, np.int64)
        self._search(rates, np.arange(len(rates)), self._vertex_count, flows, scores, found)
        missing = np.flatnonzero(found < 0)
        while len(missing):
            point = missing[0]
            flows[point] = self._merged.flows(rates[point], self._solver.values(self._merged.upper(rates[point])))
            scores[point] = flows[point] @ self.program.weights
            self.solved += 1
            missing = missing[1:]
            if self._basis_count < self._most and self._keep(*self._solver.basis()):
                self._last = self._basis_count - 1
                self._search(rates, missing, 0, flows, scores, found)
                missing = missing[found[missing] < 0]
        return flows, scores

    def _search(
        self, rates: Floats, points: Indices, vertices: int, flows: Floats, scores: Floats, found: Indices
    ) -> None:
        """Plan points by the last basis, then by those of the first dual solutions; leave what none of them fits."""
        merged = self._merged
        self._last = _plan(
            rates,
            rates @ merged.rays.T,
            points,
            self._vertices,
            vertices,
            self._first,
            self._next,
            self._values,
            self._line_count,
            self._variable,
            self._upper,
            merged.dimension_of,
            merged.height,
            merged.column_of,
            self.program.input_of,
            merged.unit,
            self.program.weights,
            self._last,
            flows,
            scores,
            found,
        )

    def _keep(self, basic: NDArray[np.bool_], at_upper: NDArray[np.bool_]) -> bool:
        """Add a basis; false if it is there, or cannot be inverted."""
        scaled, columns = self._merged.scaled, self._upper.shape[1]
        inside = np.flatnonzero(basic)
        try:
            inverse = np.linalg.inv(self._every[:, inside])
        except np.linalg.LinAlgError:
            return False
        prices = np.append(scaled.weights, np.zeros(len(scaled.limits)))[inside]
        # Where a bound is 0, the solver may call it the lower or the upper one; what a variable gains tells them apart.
        gained = scaled.weights - (prices @ inverse) @ scaled.rows
        upper = (gained > _TOLERANCE) | ((gained > -_TOLERANCE) & at_upper)
        upper &= ~basic[:columns] & (self._merged.dimension_of >= 0)
        name = basic.tobytes() + upper.tobytes()
        if name in self._seen:
            return False
        self._seen.add(name)
        held = np.flatnonzero(upper)
        per_rate = np.zeros((columns, self._merged.dimensions))
        per_rate[held, self._merged.dimension_of[held]] = self._merged.height[held]
        lines = np.concatenate(((inverse @ scaled.limits)[:, None], -inverse @ (scaled.rows @ per_rate)), axis=1)
        lines[np.abs(lines) < 1e-15 * np.abs(lines).max(axis=1, keepdims=True, initial=0.0)] = 0.0
        dual = prices @ lines
        dual[1:] += scaled.weights @ per_rate
        # A slack that cannot fall below 0 need not be looked at.
        watched = (inside < columns) | (lines < 0).any(axis=1)
        self._store(np.where(inside < columns, inside, -1)[watched], lines[watched], dual, upper)
        return True

    def _store(self, variable: Indices, lines: Floats, dual: Floats, upper: NDArray[np.bool_]) -> None:
        if self._basis_count == len(self._next):
            self._next, self._values = _doubled(self._next, -1), _doubled(self._values, 0)
            self._line_count, self._variable = _doubled(self._line_count, 0), _doubled(self._variable, 0)
            self._upper = _doubled(self._upper, 0)
        at = self._basis_count
        self._basis_count += 1
        self._values[at, :, : len(lines)] = lines.T
        self._line_count[at] = len(lines)
        self._variable[at, : len(lines)] = variable
        self._upper[at] = upper
        vertex = self._vertex(dual)
        self._next[at], self._first[vertex] = self._first[vertex], at

    def _vertex(self, dual: Floats) -> int:
        """The number of a dual solution, which is added if it is new."""
        known = self._vertices[:, : self._vertex_count]
        size = np.abs(dual).max(initial=0.0)
        same = np.flatnonzero(
            (np.abs(known - dual[:, None]) <= 1e-11 * np.maximum(np.abs(dual[:, None]), size)).all(axis=0)
        )
        if len(same):
            return int(same[0])
        if self._vertex_count == len(self._first):
            self._first = _doubled(self._first, -1)
            self._vertices = np.concatenate((self._vertices, np.zeros_like(self._vertices)), axis=1)
        self._vertices[:, self._vertex_count] = dual
        self._vertex_count += 1
        return self._vertex_count - 1


def _doubled(array: NDArray[Any], filler: int) -> NDArray[Any]:
    return np.concatenate((array, np.full_like(array, filler)))


@inlined
def _fits(
    reduced: Floats,
    values: Floats,
    lines: int,
    variable: Indices,
    dimension_of: Indices,
    height: Floats,
    taken: Floats,
) -> bool:
    """Whether a basis is optimal at a point: its variables, left in `taken`, are within their bounds."""
    for line in range(lines):
        taken[line] = values[0, line]
    for dimension in range(len(reduced)):
        rate = reduced[dimension]
        for line in range(lines):
            taken[line] += rate * values[dimension + 1, line]
    for line in range(lines):
        if taken[line] < -_TOLERANCE:
            return False
        column = variable[line]
        if column >= 0:
            dimension = dimension_of[column]
            if dimension >= 0 and taken[line] > reduced[dimension] * height[column] + _TOLERANCE:
                return False
    return True


@compiled
def _plan(
    rates: Floats,
    reduced_rates: Floats,
    points: Indices,
    vertices: Floats,
    vertex_count: int,
    first: Indices,
    following: Indices,
    values: Floats,
    line_count: Indices,
    variable: Indices,
    upper: Indices,
    dimension_of: Indices,
    height: Floats,
    column_of: Indices,
    input_of: Indices,
    unit: Floats,
    weights: Floats,
    last: int,
    flows: Floats,
    scores: Floats,
    found: Indices,
) -> int:
    """Plan points by the bases that fit; returns the basis of the last that was planned."""
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
            # Where dual solutions meet, rounding may prefer any of them.
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
