"""Solver and Solver-W: precomputed best plans for regions of rates."""

import heapq

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.planners.plan_table import PlanTable, Proof, TablePlanner
from adapt.core.fit.planners.region_tree import RegionTree
from adapt.core.fit.planners.workload import Workload
from adapt.core.fit.program.basis_pool import BasisPool
from adapt.core.fit.program.program import ROUNDING, Program

MAX_PLANS = 200_000
"""Default limit of regions with a plan."""

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
