"""Complementary local plans: a node drops first where tuples are worth least for their load."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import Program


@dataclass(frozen=True, slots=True, eq=False)
class DropOrder:
    """The drop arcs of a network with one resource, in the order in which they are closed as load rises.

    The order is the same for all rates: with one resource, what an arc is worth at a price of load is linear in its
    flow, and it pays to keep it until the price reaches its worth over its load, arcs below it closed likewise.
    Closing in that order, the last arc partly, is the best plan, also where branches meet again.

    Attributes:
        arcs: Variables by rising worth over load, those that load nothing left out; shape (steps,).
        flows: Each variable for a tuple/s of each input, after no step, the first, the first two, ...; shape
            (steps + 1, variables, inputs).
        loads: Then, of the resource by a tuple/s of each input, falling; shape (steps + 1, inputs).
        limit: Of the resource.

    Source: FIT, section 6.2.2.
    """

    arcs: Indices
    flows: Floats
    loads: Floats
    limit: float

    @classmethod
    def from_program(cls, program: Program, resource: int = 0, roots: bool = True) -> "DropOrder":
        """The order of a program in which only one resource counts.

        Args:
            roots: Whether arcs of inputs are closed too; if not, they keep what is offered, and arcs behind one that
                would be closed earlier are not closed either.
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
        """The flows that fit, and whether any do: without roots, input rates may be too high for all steps.

        Args:
            rates: Tuples/s, shape (points, inputs).

        Returns:
            Flows of shape (points, variables), those after the last step where none fit; and shape (points,).
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
    """rates @ flows.T, by picking inputs where every variable is one of them, as it is without splits."""
    picked = flows.argmax(axis=1)
    if np.array_equal(flows, np.eye(flows.shape[1])[picked]):
        return np.asarray(rates[:, picked])
    return rates @ flows.T


def _closing_order(program: Program, loads: Floats) -> Indices:
    """Variables by rising worth over load; a root is followed by none of the arcs that only it feeds."""
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
    """What each variable adds to what is offered to another, for a unit of it; shape (variables, variables)."""
    feeds = np.zeros((len(program.drop_arcs), len(program.drop_arcs)))
    splits = np.flatnonzero(program.input_of < 0)
    feeds[splits] = -program.rows[program.resources :]
    feeds[splits, splits] = 0.0
    return feeds


def _open_flows(program: Program, closed: NDArray[np.bool_]) -> Floats:
    """Each variable for a tuple/s of each input where some arcs are closed and the others whole."""
    feeds = _feeds(program)
    flows = np.zeros((len(closed), program.inputs))
    for arc in range(len(closed)):
        if not closed[arc]:
            flows[arc] = feeds[arc] @ flows
            if program.input_of[arc] >= 0:
                flows[arc, program.input_of[arc]] = 1.0
    return flows
