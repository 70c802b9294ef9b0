"""Drop order: a node first drops tuples worth least for their load."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import Program


@dataclass(frozen=True, slots=True, eq=False)
class DropOrder:
    """The order in which one resource's drop arcs close as load rises.

    The order is the same for all rates: with one resource, the value of an arc at a price of load is linear in its
    flow, so it is kept until the price reaches its value per load, with arcs downstream closed in the same way. Closing
    arcs in that order, the last one partly, is the best plan, even where branches meet again.

    Attributes:
        arcs: Variables by ascending value per load, without those that cause no load; shape (steps,).
        flows: Each variable per tuple/s of each input, after 0, 1, 2, ... steps; shape (steps + 1, variables, inputs).
        loads: Load of the resource per tuple/s of each input after each step, descending; shape (steps + 1, inputs).
        limit: Capacity of the resource.

    Source: FIT, section 6.2.2.
    """

    arcs: Indices
    flows: Floats
    loads: Floats
    limit: float

    @classmethod
    def from_program(cls, program: Program, resource: int = 0, roots: bool = True) -> "DropOrder":
        """The order of a program for a single resource.

        Args:
            roots: Whether arcs of inputs close too; if not, they keep what is offered, and arcs downstream of one that
                would close earlier do not close either.
        """
        arcs = _closing_order(program, program.rows[resource])
        if not roots:
            arcs = arcs[program.input_of[arcs] < 0]
        closed = np.zeros(len(program.drop_arcs), dtype=np.bool_)
        flows = [_open_flows(program, closed)]
        for arc in arcs:
            closed[arc] = True
            flows.append(_open_flows(program, closed))
        stacked = np.stack(flows)
        loads = np.einsum("v,svd->sd", program.rows[resource], stacked)
        return cls(arcs, stacked, loads, float(program.limits[resource]))

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


def _closing_order(program: Program, loads: Floats) -> Indices:
    """Variables by ascending value per load; arcs fed only by a closed root are omitted."""
    feeds = _feeds(program)
    still_open = np.ones(len(loads), dtype=np.bool_)
    order: list[int] = []
    while True:
        worth, load, fed = program.weights.copy(), loads.copy(), program.input_of >= 0
        for arc in range(len(loads) - 1, -1, -1):  # arcs come after those that feed them
            below = np.flatnonzero((feeds[:, arc] > 0) & still_open)
            worth[arc] += feeds[below, arc] @ worth[below]
            load[arc] += feeds[below, arc] @ load[below]
        for arc in range(len(loads)):
            above = np.flatnonzero((feeds[arc] > 0) & still_open)
            fed[arc] |= bool(fed[above].any())
        candidates = np.flatnonzero(still_open & fed & (load > 0))
        if not len(candidates):
            return np.array(order, dtype=np.int64)
        chosen = int(candidates[np.argmin(worth[candidates] / load[candidates])])
        still_open[chosen] = False
        order.append(chosen)


def _feeds(program: Program) -> Floats:
    """What a unit of each variable adds to the offer of others; shape (variables, variables)."""
    feeds = np.zeros((len(program.drop_arcs), len(program.drop_arcs)))
    splits = np.flatnonzero(program.input_of < 0)
    feeds[splits] = -program.rows[program.resources :]
    feeds[splits, splits] = 0.0
    return feeds


def _open_flows(program: Program, closed: NDArray[np.bool_]) -> Floats:
    """Each variable per tuple/s of each input, with some arcs closed and the others open."""
    feeds = _feeds(program)
    flows = np.zeros((len(closed), program.inputs))
    for arc in range(len(closed)):
        if not closed[arc]:
            flows[arc] = feeds[arc] @ flows
            if program.input_of[arc] >= 0:
                flows[arc, program.input_of[arc]] = 1.0
    return flows
