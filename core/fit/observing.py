"""Planning by observed statistics: estimates, and the changes that matter."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import Observing
from adapt.core.fit.network.true_values import values_of, with_values
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.statistics import Statistics
from adapt.core.fit.running.tick import Tick

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
        both, rates = (self._statistics.costs, self._statistics.selectivities), self._statistics.rates
        values, low, high = (np.stack([getattr(each, name) for each in both]) for name in ("values", "low", "high"))
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
        self.observations.append(Observation(values, low, high, rates.values, changes))
        return changes
