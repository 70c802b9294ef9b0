"""Statistics that nodes keep of their operators and arcs while they run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Operator
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.tick import Tick
from adapt.core.statistics.intervals import student_quantile

LEVEL = 0.95
"""Confidence level of all intervals."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Ratios of sums over the window, with confidence intervals."""

    values: Floats  # nan without an observation, shape (n,)
    low: Floats  # lower end of the interval; -inf where fewer than two ticks say something. Shape (n,)
    high: Floats  # upper end; inf likewise. Shape (n,)

    @classmethod
    def of_ratios(cls, amounts: Floats, per: Floats) -> "Estimates":
        """Estimate sum(amounts) / sum(per), from one observation of both per tick.

        Ticks where `per` is 0 say nothing. The intervals are Student's t around the ratio of the sums.

        Args:
            amounts: Shape (ticks, n).
            per: At least 0, likewise.

        Source: Cochran, Sampling techniques (1977), section 6.4, the variance of a ratio.
        """
        count, total = (per > 0).sum(axis=0), per.sum(axis=0)
        known = total > 0
        values = np.divide(amounts.sum(axis=0), total, out=np.full(len(total), np.nan), where=known)
        squares = ((amounts - np.where(known, values, 0.0) * per) ** 2).sum(axis=0)
        half, several = np.full(len(total), np.inf), count > 1
        spread = np.sqrt(squares[several] * count[several] / (count[several] - 1)) / total[several]
        half[several] = spread * _quantiles(count[several])
        return cls(values, values - half, values + half)


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
    def costs(self) -> Estimates:
        """CPU seconds per tuple of each operator."""
        return Estimates.of_ratios(self._work, self._taken)

    @property
    def selectivities(self) -> Estimates:
        """Tuples emitted per tuple, of a join per pair, of each operator."""
        return Estimates.of_ratios(self._emitted, self._given)

    @property
    def rates(self) -> Estimates:
        """Tuples/s offered on each arc."""
        return Estimates.of_ratios(self._came, np.repeat(self._seconds, self._arcs, axis=1))


def _pairs(wiring: Wiring, arc: int) -> float:
    """Pairs that a tuple on an arc makes in a join with full windows; 1 elsewhere."""
    target = int(wiring.target[arc])
    operator = wiring.network.sources[target] if target >= 0 else None
    if not isinstance(operator, Operator) or operator.join_windows is None:
        return 1.0
    return operator.join_windows[1 - wiring.arcs[arc].port]


def _quantiles(counts: NDArray[np.int64]) -> Floats:
    """Half-widths of t intervals in standard errors, by number of observations."""
    return np.array([student_quantile((1 + LEVEL) / 2, int(count) - 1) for count in counts])
