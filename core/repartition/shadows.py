"""Shadow plans: measured on the same rows, but not in force."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.counting.exact import KeyCounts
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.measures.metrics import Migration

OLDEST = 16
"""Steps for which a proposal that was not adopted is measured, at most."""

SPARSE = 4
"""The n-th proposal is measured for this many times as many steps as the largest power of 2 that divides n."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan to adopt."""

    partitioner: Partitioner
    change: Migration  # the keys and state of the window that move for it
    loads: Floats  # loads of the channels over the window, shape (3, channels)
    build_s: float | None  # time to build it; None without a clock


@dataclass(frozen=True, slots=True)
class Spent:
    """Cost of one way to re-plan.

    Since the number of channels last changed.
    """

    busiest: float = 0.0  # load of the busiest channel of each step, summed up
    moved_state: float = 0.0

    def worked(self, load: float) -> "Spent":
        """The same after a step."""
        return replace(self, busiest=self.busiest + load)

    def migrated(self, moved_state: float) -> "Spent":
        """The same after an adoption."""
        return replace(self, moved_state=self.moved_state + moved_state)

    def cost(self, of_state: float) -> float:
        """Load of the busiest channels, with what moving state cost."""
        return self.busiest + of_state * self.moved_state


@dataclass(frozen=True, slots=True)
class Shadow:
    """A step under the plan in force and under earlier proposals."""

    in_force: float  # load of the busiest channel in the step, by the plan in force
    proposed: Mapping[int, float]  # the same by proposals, by their age in steps; 0 is that of the start of the step


class Shadows:
    """Doing nothing, a rebuild every period, and earlier proposals.

    Attributes:
        in_force: What the plans in force took.
        never: What the first plan would have taken.
        periodic: What a rebuild every period would have taken.
        rebuilt: The partitioner that it would have in force.
        at_adoption: `in_force` and `periodic` after the last adoption.
        steps: Latest steps since the last adoption, oldest first.
    """

    def __init__(self, plan: Partitioner, every: int, at: int) -> None:
        """Start with one plan for all.

        Args:
            every: Steps of a period.
            at: Number of the step.
        """
        self.in_force = self.never = self.periodic = Spent()
        self.rebuilt = self._first = plan
        self.at_adoption = self.in_force, self.periodic
        self.steps: deque[Shadow] = deque(maxlen=OLDEST)
        self._every, self._due = every, at + every
        self._proposed: dict[int, Partitioner] = {}
        self._step = 0
        self._loads: list[Floats] = []

    def is_due(self, at: int) -> bool:
        """Whether a period is over."""
        return at >= self._due

    def rebuild(self, proposal: Candidate, at: int) -> None:
        """Adopt the proposal of a period, in the account of rebuilding."""
        self.periodic = self.periodic.migrated(proposal.change.state)
        self.rebuilt = proposal.partitioner
        self._due = at + self._every

    def adopt(self, proposal: Candidate) -> None:
        """Put a plan in force.

        Earlier proposals followed another one.
        """
        self.in_force = self.in_force.migrated(proposal.change.state)
        self.at_adoption = self.in_force, self.periodic
        self._proposed.clear()
        self.steps.clear()

    def begin(self, proposal: Candidate | None) -> None:
        """Begin a step, with a proposal that was not adopted."""
        self._step += 1
        if proposal is not None and proposal.change.state:
            self._proposed[self._step] = proposal.partitioner
        self._proposed = {at: each for at, each in self._proposed.items() if self._step - at < min(OLDEST, _kept(at))}
        self._loads = [np.zeros(each.channels) for each in self._plans]

    def take(self, counted: KeyCounts) -> None:
        """Measure rows of the step."""
        for loads, plan in zip(self._loads, self._plans, strict=True):
            loads += np.bincount(plan.channels_of(counted.keys), counted.counts, len(loads))

    def end(self, in_force: Floats) -> None:
        """Close the step.

        Args:
            in_force: Loads of the channels by the plan in force.
        """
        busiest = float(in_force.max())
        never, rebuilt, *proposed = (float(loads.max()) for loads in self._loads)
        self.in_force = self.in_force.worked(busiest)
        self.never, self.periodic = self.never.worked(never), self.periodic.worked(rebuilt)
        if proposed:
            ages = [self._step - at for at in self._proposed]
            self.steps.append(Shadow(busiest, dict(zip(ages, proposed, strict=True))))

    @property
    def _plans(self) -> Sequence[Partitioner]:
        return [self._first, self.rebuilt, *self._proposed.values()]


def _kept(number: int) -> int:
    """Steps for which the proposal of a step is measured."""
    return SPARSE * (number & -number)
