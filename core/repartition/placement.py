"""Decided plans as the autoscaler and the placement of a stage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.stage.control.workers import Decision, Placed, Seen, Waiting


@dataclass(frozen=True, slots=True, eq=False)
class DecidedPlan:
    """A plan with the time of its decision."""

    at_s: float  # simulated seconds
    workers: int
    owners: NDArray[np.int32]  # the worker of each unit, shape (units,)
    state: Floats  # state of each unit in tuples, as the decision counted it; likewise


class DecidedPlans:
    """Puts each plan in force at the time of its decision.

    While partitions move, later plans wait.
    """

    def __init__(self, plans: Sequence[DecidedPlan], pool: int) -> None:
        """Start with the first plan; times rise."""
        self._plans, self.pool = plans, pool
        self.least = plans[0].workers
        self._at = 0

    def decide(self, seen: Seen, waiting: Waiting) -> tuple[Decision, Waiting]:
        """The last plan that was decided by now."""
        in_force = self._at
        while self._at + 1 < len(self._plans) and self._plans[self._at + 1].at_s <= seen.at_s * (1 + 1e-9):
            self._at += 1
        return Decision(self._plans[self._at].workers, rebuild=self._at > in_force), waiting

    def count(self, partitions: NDArray[np.int32], cost_s: Floats, times_s: Floats) -> None:
        """Nothing: the decisions have counted."""

    def place(self, _workers: int) -> Placed:
        """The plan in force."""
        plan = self._plans[self._at]
        return Placed(plan.owners, plan.state, np.rint(plan.state).astype(np.int64))
