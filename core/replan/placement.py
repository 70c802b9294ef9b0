"""Decided plans as the autoscaler and the placement of a stage."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adapt.core.partitioning.loop.recent import RecentSums
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.replan.units import Units
from adapt.core.stage.control.workers import Decision, Placed, Seen, Waiting
from adapt.core.units.row_or_time_span import Length


class DecidedPlans:
    """Puts each plan in force at the time of its decision.

    The state of a unit is its rows in the window, counted as they arrive. While partitions move, later plans wait.
    """

    def __init__(
        self, plans: Sequence[tuple[float, Plan]], units: Units, pool: int, window: Length, per_s: float
    ) -> None:
        """Start with the first plan.

        Args:
            plans: Each plan with the simulated second of its decision, rising.
            window: How many rows, or how much time of the trace, a unit keeps as state.
            per_s: Microseconds of the trace in a simulated second.
        """
        self._plans, self._units, self._pool = plans, units, pool
        self._per_s = per_s
        self._at = 0
        self._state = RecentSums(window, units.count)

    @property
    def least(self) -> int:
        """Workers at the start."""
        return self._plans[0][1].channels

    @property
    def pool(self) -> int:
        """Most workers of any plan."""
        return self._pool

    def decide(self, seen: Seen, waiting: Waiting) -> tuple[Decision, Waiting]:
        """The last plan that was decided by now."""
        in_force = self._at
        while self._at + 1 < len(self._plans) and self._plans[self._at + 1][0] <= seen.at_s * (1 + 1e-9):
            self._at += 1
        return Decision(self._plans[self._at][1].channels, rebuild=self._at > in_force), waiting

    def count(self, partitions: NDArray[np.int32], _cost_s: NDArray[np.float64], times_s: NDArray[np.float64]) -> None:
        """Count rows, and forget those that left the window."""
        if not len(partitions):
            return
        rows = np.bincount(partitions, minlength=self._units.count)
        self._state.add(rows.astype(np.float64), len(partitions), float(times_s[-1]) * self._per_s)

    def place(self, _workers: int) -> Placed:
        """The plan in force."""
        owners = self._units.owners(self._plans[self._at][1])
        return Placed(owners, self._state.sums, self._state.sums.astype(np.int64))
