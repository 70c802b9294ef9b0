"""What an overloaded network gives: every node serves its operators max-min fairly in tuples."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Wiring

_HALVINGS = 60
"""Of a level's interval: no float is left between its ends."""

_ROUNDS = 50
"""Over resources that depend on each other in a circle; where they do not, the second changes nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """Steady flows through nodes that may be overloaded.

    Attributes:
        arriving: Tuples/s that reach the end of each arc, drops taken off; shape (points, arcs).
        served: Those of them that are worked on; shape (points, arcs).
        levels: The most that an operator is served of one input, by each resource; inf where all is served. Shape
            (points, resources).
    """

    arriving: Floats
    served: Floats
    levels: Floats


def service(wiring: Wiring, rates: Floats, keeps: Floats) -> Service:
    """Let every resource serve all it is offered up to a level, the highest that its limit allows.

    Equal levels in tuples/s are what the paper's Table 1 has; equal shares of CPU time would give other numbers. What
    is not served is lost to what comes after it, as it waits longer and longer. Links serve as nodes do. Where nodes
    wait for each other in a circle, levels are taken in turn until they stay.

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
    """The highest level of one resource that its limit allows, the others' given; shape (points,)."""
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
    """Resources in the order in which tuples first meet them."""
    first = [np.flatnonzero(row).min(initial=len(wiring.arcs)) for row in wiring.use > 0]
    return [int(resource) for resource in np.argsort(first, kind="stable")]
