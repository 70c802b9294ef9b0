"""Drop order: a node first drops tuples worth least for their load."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import Program

_ROUNDING = 1e-12
"""Share of an arc's load below which what is left of it counts as none."""


@dataclass(frozen=True, slots=True, eq=False)
class DropOrder:
    """The order in which one resource's drop arcs close as load rises.

    The order is the same for all rates: with one resource, the value of an arc at a price of load is linear in its
    flow, so it is kept until the price reaches its value per load, with arcs downstream closed in the same way. Closing
    arcs in that order, the last one partly, is the best plan, even where branches meet again.

    Source: FIT, section 6.2.2.
    """

    arcs: Indices  # variables by ascending value per load, without those that cause no load; shape (steps,)
    # each variable per tuple/s of each input, after 0, 1, 2, ... steps; shape (steps + 1, variables, inputs)
    flows: Floats
    # load of the resource per tuple/s of each input after each step, descending; shape (steps + 1, inputs)
    loads: Floats
    limit: float  # capacity of the resource

    @classmethod
    def from_program(cls, program: Program, resource: int = 0, roots: bool = True) -> "DropOrder":
        """The order of a program for a single resource.

        Args:
            roots: Whether arcs of inputs close too; if not, they keep what is offered, and arcs downstream of one that
                would close earlier do not close either.
        """
        branches = _Branches.of(program)
        arcs = np.array(_closing_order(program, branches, program.rows[resource]), np.int64)
        if not roots:
            arcs = arcs[program.input_of[arcs] < 0]
        flows = _flows(program, branches, arcs)
        loads = np.einsum("v,svd->sd", program.rows[resource], flows)
        return cls(arcs, flows, loads, float(program.limits[resource]))

    def plan(self, rates: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """The flows that fit, and whether any do.

        Without roots, input rates may be too high for all steps.

        Args:
            rates: Tuples/s, shape (points, inputs).

        Returns:
            Flows of shape (points, variables), those after the last step where none fit; and whether they fit, shape
                (points,).
        """
        loads = rates @ self.loads.T
        fits = loads <= self.limit * (1 + 1e-12)
        if fits[:, 0].all():
            return _kept_flows(rates, self.flows[0]), fits[:, 0]
        step = np.where(fits.any(axis=1), fits.argmax(axis=1), len(self.arcs))
        flows = np.empty((len(rates), self.flows.shape[1]))
        for at in np.unique(step):
            points = np.flatnonzero(step == at)
            flows[points] = rates[points] @ self.flows[at].T
            if at > 0:
                before, after = loads[points, at - 1], loads[points, at]
                share = np.clip((self.limit - after) / (before - after), 0.0, 1.0)[:, None]
                flows[points] += share * (rates[points] @ (self.flows[at - 1] - self.flows[at]).T)
        return flows, np.asarray(fits.any(axis=1))


def _kept_flows(rates: Floats, flows: Floats) -> Floats:
    """The product rates @ flows.T, by indexing where every variable is an input."""
    picked = flows.argmax(axis=1)
    if np.array_equal(flows, np.eye(flows.shape[1])[picked]):
        return np.asarray(rates[:, picked])
    return rates @ flows.T


@dataclass(frozen=True, slots=True, eq=False)
class _Branches:
    """Arcs that feed others: by arc, each other one and what a unit adds to its offer."""

    feeders: list[list[tuple[int, float]]]
    fed: list[list[tuple[int, float]]]

    @classmethod
    def of(cls, program: Program) -> "_Branches":
        splits = np.flatnonzero(program.input_of < 0)
        shares = -program.rows[program.resources :]
        shares[np.arange(len(splits)), splits] = 0.0
        feeders: list[list[tuple[int, float]]] = [[] for _ in program.drop_arcs]
        fed: list[list[tuple[int, float]]] = [[] for _ in program.drop_arcs]
        for row, feeder in np.argwhere(shares > 0).tolist():
            feeders[splits[row]].append((feeder, float(shares[row, feeder])))
            fed[feeder].append((int(splits[row]), float(shares[row, feeder])))
        return cls(feeders, fed)


def _closing_order(program: Program, branches: _Branches, loads: Floats) -> list[int]:
    """Variables by ascending value per load; arcs fed only by a closed root are omitted.

    Closing an arc changes the ratios of those upstream alone, and only raises them: what it takes from them is worth
    less for its load than they are. So a ratio in the heap is at most the current one.
    """
    worth, load = program.weights.tolist(), loads.tolist()
    for arc in reversed(range(len(load))):  # arcs come after those that feed them
        for below, share in branches.fed[arc]:
            worth[arc] += share * worth[below]
            load[arc] += share * load[below]
    rounding = [_ROUNDING * each for each in load]
    flowing = _Flowing(program, branches)
    heap = [(worth[arc] / load[arc], arc) for arc in range(len(load)) if flowing.open[arc] and load[arc] > 0]
    heapify(heap)
    order = []
    while heap:
        ratio, arc = heappop(heap)
        if not flowing.open[arc] or load[arc] <= rounding[arc]:
            continue
        if worth[arc] / load[arc] > ratio:
            heappush(heap, (worth[arc] / load[arc], arc))
            continue
        order.append(arc)
        flowing.close(arc)
        taken = {arc: (worth[arc], load[arc])}
        while taken:
            below = max(taken)
            less_worth, less_load = taken.pop(below)
            for feeder, share in branches.feeders[below]:
                if flowing.open[feeder]:
                    before = taken.get(feeder, (0.0, 0.0))
                    taken[feeder] = before[0] + share * less_worth, before[1] + share * less_load
                    worth[feeder] -= share * less_worth
                    load[feeder] -= share * less_load
    return order


class _Flowing:
    """Which arcs are open and fed by one that is, or by an input."""

    def __init__(self, program: Program, branches: _Branches) -> None:
        """All arcs are open."""
        self._branches = branches
        self._feeders = [int(at >= 0) for at in program.input_of]
        self.open = [False] * len(self._feeders)
        for arc in range(len(self.open)):
            self._feeders[arc] += sum(self.open[feeder] for feeder, _ in branches.feeders[arc])
            self.open[arc] = self._feeders[arc] > 0

    def close(self, arc: int) -> None:
        """Close an arc, and those that nothing else feeds."""
        self.open[arc] = False
        for below, _ in self._branches.fed[arc]:
            self._feeders[below] -= 1
            if self._feeders[below] == 0 and self.open[below]:
                self.close(below)


def _flows(program: Program, branches: _Branches, arcs: Indices) -> Floats:
    """Each variable per tuple/s of each input, with none of the arcs closed, the first, the first two, and so on."""
    flows = np.zeros((len(arcs) + 1, len(program.drop_arcs), program.inputs))
    roots = np.flatnonzero(program.input_of >= 0)
    flows[0, roots, program.input_of[roots]] = 1.0
    for arc in range(flows.shape[1]):
        for below, share in branches.fed[arc]:
            flows[0, below] += share * flows[0, arc]
    is_open = [True] * flows.shape[1]
    for step, closed in enumerate(arcs.tolist()):
        now = flows[step + 1]
        now[:] = flows[step]
        now[closed], is_open[closed] = 0.0, False
        changed = {below for below, _ in branches.fed[closed]}
        while changed:
            arc = min(changed)
            changed.remove(arc)
            if is_open[arc]:
                now[arc] = 0.0
                for feeder, share in branches.feeders[arc]:
                    now[arc] += share * now[feeder]
                changed.update(below for below, _ in branches.fed[arc])
    return flows
