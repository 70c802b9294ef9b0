"""Planners that make each plan on demand, and their interface."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.basis import BasisPool
from adapt.core.fit.planners.highs import WarmProgram
from adapt.core.fit.planners.program import Program

UNSHED = 0
"""Id of the plan that drops nothing."""

NO_PLAN = -1
"""Id where no plan in the table fits: the same share of every input is kept, or a node decides alone."""

BEST = -3
"""Id where the table of plans proves too little: the best plan takes its place."""

ALONE = -4
"""Id where a node drops by itself: it has no plan, or an old one that would overload it."""

MADE = 1
"""Id of plans made on demand."""


class Plans(NamedTuple):
    """Drop plans for several points of rates."""

    keeps: Floats  # share kept on each arc, in [0, 1]; shape (points, arcs)
    scores: Floats  # expected weighted tuples/s; shape (points,)
    # plan id in the table, or one of the constants above, per independent part of the network; shape (points, parts)
    ids: Indices


class Planner(Protocol):
    """Chooses the share of the tuples kept on each arc."""

    def plan(self, rates: Floats) -> Plans:
        """Plan for rates, tuples/s, finite and at least 0; shape (points, inputs)."""
        ...


_HALVINGS = 60
"""Bisection steps for a level; enough to reach float precision."""

_ROUNDS = 50
"""Iterations over resources that depend on each other in a cycle; without a cycle, the second changes nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """Steady flows through nodes that may be overloaded."""

    arriving: Floats  # Tuples/s that reach the end of each arc, after drops; shape (points, arcs)
    served: Floats  # Tuples/s processed of them; shape (points, arcs)
    # maximum rate served per operator input, by resource; inf where everything is served. Shape (points, resources)
    levels: Floats


def service(wiring: Wiring, rates: Floats, keeps: Floats) -> Service:
    """Serve every arc up to a level that its resource allows.

    The level is the highest possible, and the same for all arcs of a resource. Equal levels in tuples/s reproduce the
    paper's Table 1; equal shares of CPU time would give other numbers. What is not served is lost downstream, as its
    queue grows without bound. Links serve like nodes. Where nodes wait for each other in a cycle, levels are iterated
    until they are stable.

    Args:
        rates: Offered, shape (points, inputs).
        keeps: Share kept on each arc, shape (points, arcs).

    Source: FIT, section 1.1; the paper says round-robin, its numbers say tuples.
    """
    levels = np.full((len(rates), len(wiring.limits)), np.inf)
    for _ in range(_ROUNDS):
        before = levels.copy()
        for resource in _upstream_first(wiring):
            levels[:, resource] = _level(wiring, rates, keeps, levels, resource)
        if np.allclose(levels, before, rtol=1e-14, atol=0.0):
            break
    return _served(wiring, rates, keeps, levels)


def _served(wiring: Wiring, rates: Floats, keeps: Floats, levels: Floats) -> Service:
    given = np.zeros((len(rates), len(wiring.network.sources)))
    given[:, : wiring.inputs] = rates
    arriving = np.empty((len(rates), len(wiring.arcs)))
    served = np.empty_like(arriving)
    for arc, source in enumerate(wiring.source):
        arriving[:, arc] = given[:, source] * keeps[:, arc]
        limits = levels[:, wiring.use[:, arc] > 0].min(axis=1, initial=np.inf)
        served[:, arc] = np.minimum(arriving[:, arc], limits)
        if wiring.target[arc] >= 0:
            given[:, wiring.target[arc]] += wiring.gain[arc] * served[:, arc]
    return Service(arriving, served, levels)


def _level(wiring: Wiring, rates: Floats, keeps: Floats, levels: Floats, resource: int) -> Floats:
    """Highest level that a resource allows, given the others' levels; shape (points,)."""
    trial = levels.copy()
    trial[:, resource] = np.inf
    free = _served(wiring, rates, keeps, trial)
    fits = wiring.uses(free.served)[:, resource] <= 1 + 1e-15
    users = wiring.use[resource] > 0
    low, high = np.zeros(len(rates)), free.served[:, users].max(axis=1, initial=0.0)
    for _ in range(_HALVINGS):
        trial[:, resource] = (low + high) / 2
        within = wiring.uses(_served(wiring, rates, keeps, trial).served)[:, resource] <= 1
        low, high = np.where(within, trial[:, resource], low), np.where(within, high, trial[:, resource])
    return np.where(fits, np.inf, low)


def _upstream_first(wiring: Wiring) -> list[int]:
    """Resources in the order in which tuples first reach them."""
    first = [np.flatnonzero(row).min(initial=len(wiring.arcs)) for row in wiring.use > 0]
    return [int(resource) for resource in np.argsort(first, kind="stable")]


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
