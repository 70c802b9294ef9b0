"""A network in which amounts flow, without random draws: what a plan is worth on average."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.running.tick import Offered, Tick


class Fluid:
    """Every tick, resources serve what they can of what waits and comes; what they cannot waits for the next tick.

    Operators are served in the order of the network, sources first. Joins have full windows. With a plan that fits all
    is served in its tick, and the score is that of the program.
    """

    def __init__(self, wiring: Wiring, cost_scale: float = 1.0) -> None:
        """An empty network.

        Args:
            cost_scale: True costs of operators over those that are declared.
        """
        self._wiring, self._use = wiring, true_use(wiring, cost_scale)
        self._queued = np.zeros(len(wiring.arcs))

    def run(self, offered: Offered, keeps: Floats) -> Tick:
        """Let a tick happen."""
        wiring, arcs = self._wiring, len(self._wiring.arcs)
        amounts = np.bincount(offered.inputs, minlength=wiring.inputs) * scales(wiring)
        given = np.concatenate((amounts, np.zeros(len(wiring.network.operators))))
        network = (wiring.source, wiring.target, wiring.gain, self._use, wiring.limits * offered.tick_s)
        came, dropped, served = np.zeros(arcs), np.zeros(arcs), np.zeros(arcs)
        _flow(given, np.ascontiguousarray(keeps, np.float64), *network, self._queued, came, dropped, served)
        return Tick(
            offered=came,
            dropped=dropped,
            queue_drops=np.zeros(arcs),
            served=served,
            queued=self._queued.copy(),
            busy_s=self._use @ served / wiring.limits,
            score=float(served @ wiring.worth / offered.tick_s),
            latency_s=None,
            latency_max_s=None,
            wait_s=self._use @ self._queued / wiring.limits,
        )

    def latencies(self) -> NDArray[np.int64]:
        """None are known."""
        return np.zeros(0, np.int64)


def true_use(wiring: Wiring, cost_scale: float) -> Floats:
    """What a tuple on each arc really takes of each resource, shape (resources, arcs)."""
    nodes = len(wiring.network.nodes)
    return np.concatenate((wiring.use[:nodes] * cost_scale, wiring.use[nodes:]))


def scales(wiring: Wiring) -> Floats:
    """Tuples that a row of each input stands for, shape (inputs,)."""
    return np.array([entering.scale for entering in wiring.network.inputs])


@compiled
def _flow(
    given: Floats,
    keeps: Floats,
    source: Indices,
    target: Indices,
    gain: Floats,
    use: Floats,
    left: Floats,
    queued: Floats,
    offered: Floats,
    dropped: Floats,
    served: Floats,
) -> None:
    """One tick; `left` is what resources have, `queued` what waits before and after."""
    resources = len(left)
    for arc in range(len(source)):
        offered[arc] = given[source[arc]]
        kept = offered[arc] * keeps[arc]
        dropped[arc] = offered[arc] - kept
        waiting = queued[arc] + kept
        share = 1.0
        for resource in range(resources):
            work = use[resource, arc] * waiting
            if work > left[resource]:
                share = min(share, left[resource] / work)
        done = waiting * share
        for resource in range(resources):
            left[resource] = max(0.0, left[resource] - use[resource, arc] * done)
        served[arc] = done
        queued[arc] = waiting - done
        if target[arc] >= 0:
            given[target[arc]] += gain[arc] * done
