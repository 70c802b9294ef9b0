"""Solver and Solver-W: precomputed best plans for regions of rates."""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.network.settings import MAX_PLANS
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.basis import BasisPool
from adapt.core.fit.planners.plan_table import PlanTable, Proof, TablePlanner
from adapt.core.fit.planners.program import ROUNDING, Program


@dataclass(frozen=True, slots=True, eq=False)
class RegionTree:
    """Regions by number, the whole box first.

    Source: FIT, section 5.1; Samet, The Quadtree and Related Hierarchical Data Structures (1984).
    """

    most: Floats  # the top corner of the box, tuples/s, shape (inputs,)
    axes: Indices  # the inputs that are divided: those whose rate can be above 0
    # the first of the 2^axes consecutive parts of a region; bit k of their offset is 1 in the upper half of axis k.
    # -1: not divided. Shape (regions,)
    child: Indices
    plan: Indices  # the plan of an undivided region; -1: it needs none. Shape (regions,)

    def find(self, rates: Floats) -> Indices:
        """The plans of points; points outside the box are clamped to it."""
        found = np.empty(len(rates), np.int64)
        _find(rates, self.most, self.axes, self.child, self.plan, found)
        return found

    def inside(self, rates: Floats) -> Floats:
        """The rates scaled down to the box."""
        return np.minimum(rates, self.most)


@compiled
def _find(rates: Floats, most: Floats, axes: Indices, child: Indices, plan: Indices, found: Indices) -> None:
    low, high = np.empty(len(most)), np.empty(len(most))
    for point in range(len(rates)):
        region = 0
        for axis in axes:
            low[axis], high[axis] = 0.0, most[axis]
        while child[region] >= 0:
            offset = 0
            for bit in range(len(axes)):
                axis = axes[bit]
                middle = (low[axis] + high[axis]) / 2
                if rates[point, axis] >= middle:
                    offset |= 1 << bit
                    low[axis] = middle
                else:
                    high[axis] = middle
            region = child[region] + offset
        found[point] = plan[region]


class Workload(Protocol):
    """A distribution of the rates of all inputs."""

    def probability(self, low: Floats, high: Floats) -> Floats:
        """The probability of each box, shape (boxes,).

        Args:
            low: Lower corners, inclusive, shape (boxes, inputs).
            high: Upper corners, exclusive, shape (boxes, inputs).
        """
        ...

    def of(self, rates: Callable[[Floats], Floats]) -> "Workload":
        """The distribution of other rates, given as a function of these."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Exponential:
    """Independent exponential rates.

    Source: FIT, section 8.1; the paper's lambda behaves like a mean, not its inverse.
    """

    means: Floats  # Tuples/s, above 0; shape (inputs,)

    def __post_init__(self) -> None:
        if not ((self.means > 0) & (self.means < np.inf)).all():
            raise BadInput(f"mean rates must be finite numbers above 0 (got {self.means})")

    def probability(self, low: Floats, high: Floats) -> Floats:
        """The product over inputs of differences of exp(-rate / mean)."""
        return np.asarray(np.prod(np.exp(-low / self.means) - np.exp(-high / self.means), axis=1))

    def of(self, rates: Callable[[Floats], Floats]) -> "Exponential":
        """The marginal distribution of some rates."""
        return Exponential(rates(self.means))


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The empirical distribution of observed rates."""

    rates: Floats  # shape (times, inputs), at least one time

    def __post_init__(self) -> None:
        if not len(self.rates):
            raise BadInput("a workload needs at least one row of observed rates")

    def probability(self, low: Floats, high: Floats) -> Floats:
        """The share of times within each box."""
        return np.array(
            [
                np.mean(((self.rates >= least) & (self.rates < most)).all(axis=1))
                for least, most in zip(low, high, strict=True)
            ]
        )

    def of(self, rates: Callable[[Floats], Floats]) -> "Observed":
        """The distribution of functions of these rates."""
        return Observed(rates(self.rates))


WINDOW = 4096
"""Newest ticks that a learnt workload holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """The rates observed while a network runs.

    Before any, all rates up to the highest are equally likely; that counts as one more tick, so none is ruled out.
    """

    rates: Floats  # shape (times, inputs), perhaps none
    most: Floats  # the highest rates, above 0, shape (inputs,)

    def probability(self, low: Floats, high: Floats) -> Floats:
        """The share of times within each box."""
        prior = np.prod(np.clip(np.minimum(high, self.most) - low, 0.0, None) / self.most, axis=1)
        seen = Observed(self.rates).probability(low, high) if len(self.rates) else np.zeros(len(low))
        return np.asarray((len(self.rates) * seen + prior) / (len(self.rates) + 1))

    def of(self, rates: Callable[[Floats], Floats]) -> "Learnt":
        """The distribution of functions of these rates."""
        return Learnt(rates(self.rates), rates(self.most))


class Seen:
    """Rates as they are observed, and when to learn from them.

    That is after 1, 2, 4, 8 ... ticks, and, once the window is full, after each window.

    Attributes:
        workload: As last learnt; None: nothing is learnt.
    """

    def __init__(self, known: Learnt | None) -> None:
        self.workload = known
        self._rates: deque[Floats] = deque([] if known is None else known.rates, WINDOW)
        self._ticks, self._due = 0, 1

    @property
    def left(self) -> int:
        """Ticks until the next time, at least 1."""
        return WINDOW if self.workload is None else self._due - self._ticks

    def add(self, rates: Floats) -> bool:
        """Observe a tick's rates; returns whether the workload is new."""
        if self.workload is None:
            return False
        self._rates.append(rates)
        self._ticks += 1
        if self._ticks < self._due:
            return False
        self._due += min(self._due, WINDOW)
        self.workload = Learnt(np.array(self._rates), self.workload.most)
        return True


MAX_INPUTS = 16
"""Limit of inputs, as dividing a region makes two to the power of them."""


class Regions:
    """A box of rates, divided until every region's plan is good enough.

    The best score rises with the rates, so within a region no point loses more by the plan of its bottom corner than
    the top corner does: error = 1 - S(bottom) / S(top). A region whose top corner fits needs no plan. With a workload,
    the sum over regions of probability times error is reduced; without one, the largest error. Division can stop at any
    time, with `error` reached so far.

    Source: FIT, section 5.1; with a workload a reconstruction, as section 5.2 is lost.
    """

    def __init__(self, program: Program, most: Floats, workload: Workload | None = None) -> None:
        """One region.

        Args:
            most: The highest rates to plan for, at least 0, shape (inputs,).
            workload: Distribution of rates; rates outside the box are clamped to it.
        """
        if most.shape != (program.inputs,) or not ((most >= 0) & (most < np.inf)).all():
            raise UsageError(f"highest rates must be {program.inputs} finite numbers, at least 0 (got {most})")
        if len(most) > MAX_INPUTS:
            raise UsageError(f"solver takes at most {MAX_INPUTS} inputs (got {len(most)}); use exact")
        self.program, self._most, self._workload = program, most, workload
        self._pool = BasisPool(program)
        self._axes = np.flatnonzero(most > 0)
        bits = (np.arange(1 << len(self._axes))[:, None] >> np.arange(len(self._axes))) & 1
        self._upper_half = np.zeros((len(bits), program.inputs), dtype=np.bool_)
        self._upper_half[:, self._axes] = bits == 1
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        self._child: list[int] = []
        self._error: list[float] = []
        self._queue: list[tuple[float, int]] = []
        self.plans = 0
        self._add(np.zeros((1, program.inputs)), most[None])

    @property
    def error(self) -> float:
        """The largest error of a region; with a workload, the expected error."""
        priorities = [-priority for priority, _ in self._queue]
        return sum(priorities) if self._workload is not None else max(priorities, default=0.0)

    def divide(self, target: float, max_plans: int = MAX_PLANS) -> None:
        """Divide the worst region until the target or a limit is reached.

        Args:
            target: The error to reach.
            max_plans: Stop before a division would exceed this number of plans.
        """
        left, parts = self.error, len(self._upper_half)
        while self._queue and left > target * (1 + ROUNDING) and self.plans + parts - 1 <= max_plans:
            priority, region = heapq.heappop(self._queue)
            self.plans -= 1
            low, high = self._low[region], self._high[region]
            middle = (low + high) / 2
            self._child[region] = len(self._child)
            added = self._add(np.where(self._upper_half, middle, low), np.where(self._upper_half, high, middle))
            left = left + priority + added if self._workload is not None else -self._queue[0][0] if self._queue else 0.0

    def planner(self) -> TablePlanner:
        """A planner by the current regions."""
        child = np.array(self._child, np.int64)
        planned = np.flatnonzero((child < 0) & ~np.isnan(self._error))
        low, high = np.array(self._low)[planned], np.array(self._high)[planned]
        flows, scores = self._pool.plan(low)
        plan = np.full(len(child), -1, np.int64)
        plan[planned] = np.arange(len(planned))
        table = PlanTable(low, high, scores, np.array(self._error)[planned], flows)
        tree = RegionTree(self._most, self._axes, child, plan)
        return TablePlanner(self.program, ((table, tree),), self.error, Proof(self.error))

    def corners(self) -> int:
        """Number of distinct points planned."""
        return len(np.unique(np.concatenate((self._low, self._high)), axis=0))

    def _add(self, low: Floats, high: Floats) -> float:
        """Add regions; returns the sum of their priorities."""
        fits = self.program.feasible(high)
        _, scores = self._pool.plan(np.concatenate((low, high)))
        bottom, top = scores[: len(low)], scores[len(low) :]
        error = np.where(top > 0, 1 - bottom / np.where(top > 0, top, 1.0), 0.0)
        error = np.where(fits, np.nan, np.maximum(error, 0.0))
        counts = np.where(fits, 0.0, error)
        if self._workload is not None:
            counts = counts * self._workload.probability(low, np.where(high >= self._most, np.inf, high))
        for region in np.flatnonzero(~fits):
            heapq.heappush(self._queue, (-float(counts[region]), len(self._child) + int(region)))
        self._low += list(low)
        self._high += list(high)
        self._child += [-1] * len(low)
        self._error += error.tolist()
        self.plans += int((~fits).sum())
        return float(counts.sum())
