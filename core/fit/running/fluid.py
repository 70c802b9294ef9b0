"""The fluid simulator: average flows, without random draws."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.running.tick import LATE, Offered, Tick


class Fluid:
    """Serves what fits in every tick; the rest waits.

    Operators are served in the order of the network, sources first. Joins have full windows. A plan that fits is served
    within its tick, and its score is that of the program. Queues are served in order of arrival; what waits more
    than `LATE` ticks does not count in the score.
    """

    def __init__(self, wiring: Wiring, cost_scale: float = 1.0) -> None:
        """An empty network.

        Args:
            cost_scale: Actual costs of operators / declared costs.
        """
        self._cost_scale = cost_scale
        self.follow(wiring)
        self._queued = np.zeros(len(wiring.arcs))
        self._kept = deque([self._queued.copy()] * LATE, LATE)

    def follow(self, wiring: Wiring) -> None:
        """Change costs and selectivities, from the next tick on."""
        self._wiring, self._use = wiring, true_use(wiring, self._cost_scale)

    def run(self, offered: Offered, keeps: Floats) -> Tick:
        """Simulate a tick."""
        wiring, arcs = self._wiring, len(self._wiring.arcs)
        amounts = np.bincount(offered.inputs, minlength=wiring.inputs) * scales(wiring)
        given = np.concatenate((amounts, np.zeros(len(wiring.network.operators))))
        late, read_late = np.zeros(len(given)), np.zeros(arcs)
        network = (wiring.source, wiring.target, wiring.gain, self._use, wiring.limits * offered.tick_s)
        came, dropped, served = np.zeros(arcs), np.zeros(arcs), np.zeros(arcs)
        each = np.ascontiguousarray(keeps, np.float64)
        older = self._queued - sum(self._kept)
        _flow(given, late, each, *network, self._queued, older, self._kept[0], came, dropped, served, read_late)
        self._kept.append(came - dropped)
        return Tick(
            offered=came,
            dropped=dropped,
            queue_drops=np.zeros(arcs),
            withdrawn=np.zeros(arcs),
            served=served,
            queued=self._queued.copy(),
            busy_s=self._use @ served / wiring.limits,
            work_s=(self._use * served / wiring.limits[:, None])[: len(wiring.network.nodes)].sum(axis=0),
            score=float((served - read_late) @ wiring.worth / offered.tick_s),
            latency_s=None,
            latency_max_s=None,
            wait_s=self._use @ self._queued / wiring.limits,
        )

    def latencies(self) -> NDArray[np.int64]:
        """Empty: a fluid has no latencies."""
        return np.zeros(0, np.int64)


def true_use(wiring: Wiring, cost_scale: float) -> Floats:
    """Actual resource use per tuple on each arc, shape (resources, arcs)."""
    nodes = len(wiring.network.nodes)
    return np.concatenate((wiring.use[:nodes] * cost_scale, wiring.use[nodes:]))


def scales(wiring: Wiring) -> Floats:
    """Tuples per row of each input, shape (inputs,)."""
    return np.array([entering.scale for entering in wiring.network.inputs])


@inlined
def _late_share(older: float, came: float, done: float) -> float:
    """Part of the tuples `done` in a tick that waited too long, where tuples come and go evenly within ticks."""
    faster = done - came
    if faster == 0:
        return 1.0 if older > 0 else 0.0
    since = min(max(older / faster, 0.0), 1.0)
    return since if faster > 0 else 1 - since


@compiled
def _flow(
    given: Floats,
    late: Floats,
    keeps: Floats,
    source: Indices,
    target: Indices,
    gain: Floats,
    use: Floats,
    left: Floats,
    queued: Floats,
    older: Floats,
    came: Floats,
    offered: Floats,
    dropped: Floats,
    served: Floats,
    served_late: Floats,
) -> None:
    """One tick; `left` is the capacity that remains, `queued` what waits before and after.

    `late` is the part of `given` that waited too long; `came` what was kept `LATE` ticks ago, and `older` what waits
    less what was kept since then.
    """
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
        old = done * _late_share(older[arc], came[arc], done)
        if kept > 0:
            old += (done - old) * late[source[arc]] * keeps[arc] / kept
        served_late[arc] = old
        queued[arc] = waiting - done
        if target[arc] >= 0:
            given[target[arc]] += gain[arc] * done
            late[target[arc]] += gain[arc] * old
