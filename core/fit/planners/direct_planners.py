"""Planners that make each plan on demand: none, proportional, lp, exact."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.planners.max_min import service
from adapt.core.fit.planners.planner import MADE, UNSHED, Plans
from adapt.core.fit.program.basis_pool import BasisPool
from adapt.core.fit.program.highs import WarmProgram
from adapt.core.fit.program.program import Program


class Nothing:
    """Drops nothing; overloaded nodes serve their operators max-min fairly."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def plan(self, rates: Floats) -> Plans:
        """The plan that keeps everything."""
        program, wiring = self._program, self._program.wiring
        keeps = np.ones((len(rates), len(wiring.arcs)))
        scores = program.unshed(rates) @ program.weights
        over = np.flatnonzero(~program.feasible(rates))
        scores[over] = wiring.scores(service(wiring, rates[over], keeps[over]).arriving)
        return Plans(keeps, scores, np.full((len(rates), 1), UNSHED))


class Proportional:
    """Keeps the same share of every input, the largest that fits."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def plan(self, rates: Floats) -> Plans:
        """One share for all arcs of inputs."""
        program = self._program
        uses = program.unshed(rates) @ program.rows[: program.resources].T
        fullest = (uses / program.limits[: program.resources]).max(axis=1, initial=0.0)
        share = 1 / np.maximum(fullest, 1.0)
        keeps = np.ones((len(rates), len(program.wiring.arcs)))
        keeps[:, program.wiring.source < program.inputs] = share[:, None]
        scores = share * (program.unshed(rates) @ program.weights)
        return Plans(keeps, scores, np.where(share < 1, MADE, UNSHED)[:, None])


class LinearProgram:
    """The best plan, by one linear program per overloaded point."""

    def __init__(self, program: Program) -> None:
        self._program, self._solver = program, WarmProgram(program)

    def plan(self, rates: Floats) -> Plans:
        """Solve the points in turn."""
        flows = self._program.unshed(rates)
        overloaded = ~self._program.feasible(rates)
        for point in np.flatnonzero(overloaded):
            flows[point] = self._solver.flows(rates[point])
        return _made(self._program, rates, flows, flows @ self._program.weights, overloaded)


class Exact:
    """The best plan, by reuse of bases that were optimal before."""

    def __init__(self, program: Program) -> None:
        self._program, self.pool = program, BasisPool(program)

    def plan(self, rates: Floats) -> Plans:
        """Plan all points in one batch."""
        overloaded = ~self._program.feasible(rates)
        flows = self._program.unshed(rates)
        scores = flows @ self._program.weights
        flows[overloaded], scores[overloaded] = self.pool.plan(rates[overloaded])
        return _made(self._program, rates, flows, scores, overloaded)


def _made(
    program: Program, rates: Floats, flows: Floats, scores: Floats, shed: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Plans:
    return Plans(program.keeps(rates, flows), scores, np.where(shed, MADE, UNSHED)[:, None])
