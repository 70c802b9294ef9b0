"""A pool of optimal bases that gives exact plans without solving."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.basis import Basis
from adapt.core.fit.program.basis_search import Pool, Variables, plan_points
from adapt.core.fit.program.highs import WarmSolver
from adapt.core.fit.program.lp_presolve import Merged
from adapt.core.fit.program.program import Program

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
