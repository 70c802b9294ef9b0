"""Max-min fair service: the output of an overloaded network without shedding."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Wiring

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
