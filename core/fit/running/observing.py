"""Statistics that nodes keep while they run, and plan by."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Network, Operator
from adapt.core.fit.network.settings import Observing
from adapt.core.fit.network.true_values import values_of, with_values
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.fluid import Tick
from adapt.core.statistics.intervals import student_quantile

LEVEL = 0.95
"""Confidence level of all intervals."""


def estimated_ratios(amounts: Floats, per: Floats) -> Floats:
    """Ratios of sums over the window, and the ends of their intervals.

    They estimate sum(amounts) / sum(per), from one observation of both per tick. Ticks where `per` is 0 say nothing.
    The intervals are Student's t around the ratio of the sums.

    Args:
        amounts: Shape (ticks, n).
        per: At least 0, likewise.

    Returns:
        Ratios, nan without an observation; then lower and upper ends, -inf and inf where fewer than two ticks say
            something. Shape (3, n).

    Source: Cochran, Sampling techniques (1977), section 6.4, the variance of a ratio.
    """
    count, total = (per > 0).sum(axis=0), per.sum(axis=0)
    known = total > 0
    values = np.divide(amounts.sum(axis=0), total, out=np.full(len(total), np.nan), where=known)
    squares = ((amounts - np.where(known, values, 0.0) * per) ** 2).sum(axis=0)
    half, several = np.full(len(total), np.inf), count > 1
    spread = np.sqrt(squares[several] * count[several] / (count[several] - 1)) / total[several]
    half[several] = spread * [student_quantile((1 + LEVEL) / 2, int(ticks) - 1) for ticks in count[several]]
    return np.stack((values, values - half, values + half))


class Statistics:
    """What the nodes of a network measure, over the newest ticks.

    A node counts the tuples that each of its operators takes and emits and the time that they take, and the tuples that
    arrive on its arcs. A join says nothing of its selectivity before both its windows are full.
    """

    def __init__(self, wiring: Wiring, window: int) -> None:
        """Statistics without an observation.

        Args:
            wiring: Of the network; only its structure counts.
            window: Ticks, at least 2.
        """
        network, operators = wiring.network, wiring.network.operators
        capacity = {node.name: node.capacity for node in network.nodes}
        self._arcs = len(wiring.arcs)
        self._capacities = np.array([capacity[operator.node] for operator in operators])
        inner = wiring.target >= 0
        self._target = np.where(inner, wiring.target - wiring.inputs, len(operators))
        self._emits = np.searchsorted(wiring.source, np.arange(len(operators)) + wiring.inputs)
        self._pairs = np.array([_pairs(wiring, arc) for arc in range(self._arcs)])
        self._joins = [
            (at, np.flatnonzero(self._target == at), np.array(operator.join_windows))
            for at, operator in enumerate(operators)
            if operator.join_windows is not None
        ]
        self._so_far = np.zeros(self._arcs)
        self._ticks = 0
        self._work, self._taken, self._emitted, self._given = (np.zeros((window, len(operators))) for _ in range(4))
        self._came, self._seconds = np.zeros((window, self._arcs)), np.zeros((window, 1))

    def add(self, tick: Tick, tick_s: float) -> None:
        """Count a finished tick, in place of the oldest."""
        at, operators = self._ticks % len(self._came), len(self._capacities)
        self._ticks += 1
        by_operator = (
            np.bincount(self._target, of_arcs, operators + 1)[:operators]
            for of_arcs in (tick.work_s, tick.served, tick.served * self._pairs)
        )
        work, self._taken[at], given = by_operator
        self._work[at] = work * self._capacities
        emitted = tick.offered[self._emits]
        for number, arcs, windows in self._joins:
            if (self._so_far[arcs] < windows).any():
                given[number] = emitted[number] = 0.0
        self._given[at], self._emitted[at] = given, emitted
        self._came[at], self._seconds[at] = tick.offered, tick_s
        self._so_far += tick.served

    @property
    def costs(self) -> Floats:
        """CPU seconds per tuple of each operator."""
        return estimated_ratios(self._work, self._taken)

    @property
    def selectivities(self) -> Floats:
        """Tuples emitted per tuple, of a join per pair, of each operator."""
        return estimated_ratios(self._emitted, self._given)

    @property
    def rates(self) -> Floats:
        """Tuples/s offered on each arc."""
        return estimated_ratios(self._came, np.repeat(self._seconds, self._arcs, axis=1))


def _pairs(wiring: Wiring, arc: int) -> float:
    """Pairs that a tuple on an arc makes in a join with full windows; 1 elsewhere."""
    target = int(wiring.target[arc])
    operator = wiring.network.sources[target] if target >= 0 else None
    if not isinstance(operator, Operator) or operator.join_windows is None:
        return 1.0
    return operator.join_windows[1 - wiring.arcs[arc].port]


KINDS = ("cost", "selectivity")
"""What is estimated of an operator."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """An important change: plans use an estimate from now on."""

    tick: int  # the last tick that the estimate covers
    operator: int
    kind: str  # one of `KINDS`
    before: float  # the value that plans used
    estimate: float  # the value that they use from now on
    low: float  # lower end of its interval
    high: float  # upper end


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Estimates at the end of a tick; kinds are those of `KINDS`."""

    values: Floats  # estimates, nan if unknown; shape (kinds, operators)
    low: Floats  # lower ends of their intervals, likewise
    high: Floats  # upper ends
    rates: Floats  # mean tuples/s offered on the arcs over the window, shape (arcs,)
    changes: tuple[ValueChange, ...]  # important ones


class Observer:
    """All nodes' statistics, and the values that plans use.

    A value is replaced by its estimate when both differ by more than the important change and the value lies outside
    the interval of the estimate. Every node judges its own operators.

    Attributes:
        network: With the values that plans use.
        observations: One per tick.
    """

    def __init__(self, network: Network, observing: Observing) -> None:
        self.network, self._observing = network, observing
        self._used = values_of(network)
        self._most = np.full_like(self._used, np.inf)
        self._most[1, [operator.kind is OperatorKind.FILTER for operator in network.operators]] = 1.0
        self._statistics = Statistics(Wiring.from_network(network), observing.window)
        self.observations: list[Observation] = []

    def observe(self, tick: Tick, tick_s: float) -> tuple[ValueChange, ...]:
        """Count a finished tick; returns the important changes."""
        self._statistics.add(tick, tick_s)
        values, low, high = np.stack((self._statistics.costs, self._statistics.selectivities), axis=1)
        wanted = np.minimum(values, self._most)
        apart = np.abs(wanted - self._used) > self._observing.important * self._used
        apart &= (self._used < low) | (self._used > high)
        # An operator without cost that emits nothing says too little.
        apart &= np.where(apart, wanted, self._used).sum(axis=0) > 0
        changes = tuple(
            ValueChange(
                len(self.observations),
                int(at),
                KINDS[kind],
                *(float(of[kind, at]) for of in (self._used, wanted, low, high)),
            )
            for kind, at in np.argwhere(apart)
        )
        if changes:
            self._used = np.where(apart, wanted, self._used)
            self.network = with_values(self.network, *self._used)
        self.observations.append(Observation(values, low, high, self._statistics.rates[0], changes))
        return changes
