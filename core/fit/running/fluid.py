"""Simulators of a network: their interface, and that of average flows."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.fit.network.wiring import Indices, Wiring

LATE = 10
"""Ticks after the arrival of a row in which its results count in the score."""


@dataclass(frozen=True, slots=True, eq=False)
class Offered:
    """The rows that arrive during a tick."""

    begin_us: int  # start, in microseconds since the start of the run
    end_us: int  # end, exclusive
    at_us: NDArray[np.int64]  # arrival of each row, ascending; shape (rows,)
    inputs: Indices  # the input that reads each row; shape (rows,)

    @property
    def tick_s(self) -> float:
        """Length of the tick."""
        return (self.end_us - self.begin_us) / 1e6

    def after(self, begin_us: int) -> "Offered":
        """The same with times since another one."""
        return replace(
            self, begin_us=self.begin_us - begin_us, end_us=self.end_us - begin_us, at_us=self.at_us - begin_us
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """What happened in a tick; amounts are tuples, by arc.

    On every arc, summed from the start: offered = dropped + queue_drops + served + queued.
    """

    offered: Floats  # emitted by the source of each arc, shape (arcs,)
    dropped: Floats  # dropped by plan
    queue_drops: Floats  # dropped by a node with a full queue
    served: Floats  # processed by the operator, or read at an output
    # results of the operator at the end of each arc, of windows that lost a tuple to a full queue after these were
    # emitted; they do not count in the score
    withdrawn: Floats
    queued: Floats  # waiting or being processed at a link or node, at the end
    busy_s: Floats  # CPU or transfer time of each node, then link; shape (resources,)
    work_s: Floats  # CPU time at its node for the tuples of each arc
    score: float  # weighted tuples/s at the outputs, without those that come too late
    latency_s: float | None  # mean time from arrival of a row to its results; None without results, or for a fluid flow
    latency_max_s: float | None  # the longest such time
    wait_s: Floats  # time to drain the queue of each node, then link, at the end; shape (resources,)


class Running(Protocol):
    """A simulator of a network, tick by tick."""

    def run(self, offered: Offered, keeps: Floats) -> Tick:
        """Simulate a tick with these shares kept on the arcs, shape (arcs,)."""
        ...

    def follow(self, wiring: Wiring) -> None:
        """Change the true costs and selectivities, from the next tick on."""
        ...

    def latencies(self) -> NDArray[np.int64]:
        """Results per latency bin of `core.histogram`; empty for a fluid flow."""
        ...


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
