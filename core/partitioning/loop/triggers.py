"""Triggers of a new plan: period, violation, or worth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.partitioning.loop.proposal import Proposal
from adapt.core.partitioning.measures.resources import RESOURCES
from adapt.core.units.durations import duration_text

AGES = 4
"""Latest proposals that `WhenWorth` compares with the plan in force, one a step."""

FEWEST = 2
"""Fewest steps of that."""

HOLDS = 10
"""How many times as long as it was seen a saving is expected to hold, at most."""

SMALL = 0.05
"""Savings up to this share of the busiest channel's load are left alone."""

MARGIN = 1.5
"""How many times its cost a plan must save: the first estimate that is high enough is likely too high."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A step under the plan in force and under the latest proposals.

    Attributes:
        in_force: Load of the busiest channel in the step, by the plan in force.
        proposed: The same by proposals from before the step, the latest first.
    """

    in_force: float
    proposed: Sequence[float]


@dataclass(frozen=True, slots=True)
class Record:
    """What adopted plans did since the number of channels last changed.

    Attributes:
        adopted: How many there were.
        steps: Steps before the last of them came into force.
        moved_state: State that moved for them.
        saved: Load that they saved on the busiest channel, against the plan before them.
    """

    adopted: int = 0
    steps: int = 0
    moved_state: float = 0.0
    saved: float = 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known at a time, from earlier rows alone.

    Attributes:
        at_us: Time in microseconds.
        full: Whether a whole window was counted.
        ratios: Measures max/min load of each resource over the window (r_k); None if a channel is empty.
        tolerance: Tolerated max/min load of each (alpha_k).
        plan_since_us: Time since which the plan is in force.
        record: What adopted plans did so far.
        shadows: Latest steps that a proposal was compared in, oldest first.
        proposal: Builds the next plan from the counts, once.
    """

    at_us: int
    full: bool
    ratios: Callable[[], Sequence[float | None]]
    tolerance: Sequence[float]
    plan_since_us: int
    record: Record
    shadows: Sequence[Shadow]
    proposal: Callable[[], Proposal]


@dataclass(frozen=True, slots=True)
class Decided:
    """Decision of a trigger, with its reason."""

    fires: bool
    why: str


class Trigger(Protocol):
    """Decides at each step whether a new plan is adopted."""

    @property
    def ages(self) -> int:
        """How many proposals `Seen.shadows` compares; unless 0, each step builds one."""

    def decide(self, seen: Seen) -> Decided:
        """The decision at one step."""


@dataclass(frozen=True, slots=True)
class Never:
    """Keeps the plan."""

    ages = 0

    def decide(self, _: Seen) -> Decided:
        """Keep the plan."""
        return Decided(False, "no trigger")


@dataclass(frozen=True, slots=True)
class EveryPeriod:
    """Adopts a plan every period."""

    period_us: int
    ages = 0

    def decide(self, seen: Seen) -> Decided:
        """Fire once the plan is a period old."""
        age = seen.at_us - seen.plan_since_us
        if age >= self.period_us:
            return Decided(True, f"the period of {duration_text(self.period_us)} is over")
        return Decided(False, f"{duration_text(self.period_us - age)} of the period remain")


@dataclass(slots=True)
class OnViolation:
    """Adopts a plan when an imbalance beyond tolerance lasts.

    Source: partitioning functions, section 3.4: balance constraints that must hold.
    """

    lasting_us: int
    ages = 0
    _since_us: int | None = field(default=None, repr=False)

    def decide(self, seen: Seen) -> Decided:
        """Fire once r_k > alpha_k has lasted, counted in whole windows."""
        if not seen.full:
            return Decided(False, "the window is not full yet")
        ratios = seen.ratios()
        over = [_over(ratio, alpha) for ratio, alpha in zip(ratios, seen.tolerance, strict=True)]
        worst, at = max(over), over.index(max(over))
        said = f"{RESOURCES[at]} load {_ratio(ratios[at])} of tolerated {seen.tolerance[at]:g}"
        if worst <= 1:
            self._since_us = None
            return Decided(False, f"within tolerance: {said}")
        self._since_us = seen.at_us if self._since_us is None else self._since_us
        lasted = seen.at_us - self._since_us
        if lasted < self.lasting_us:
            return Decided(False, f"beyond tolerance, but not for {duration_text(self.lasting_us)} yet: {said}")
        self._since_us = None
        return Decided(True, f"beyond tolerance: {said}")


@dataclass(frozen=True, slots=True)
class WhenWorth:
    """Adopts a plan when what it saves exceeds what its migration costs.

    What it saves is seen on proposals that were not adopted: each step, the busiest channel of the plan in force
    against those of the last `AGES` proposals, which were built before the step. So a saving is known by the age of a
    plan. It is expected to fall on as it fell from younger to older proposals, and to hold for as long as plans held so
    far, at most `HOLDS` times as long as it was seen. What earlier plans cost and did not save counts as a cost. All is
    in units of load, on the busiest channel.

    Attributes:
        move_cost: Load that moving one unit of state costs the busiest channel.
        pause_cost: Load that any adoption costs.

    Raises:
        UsageError: a cost is below 0.
    """

    move_cost: float = 1.0
    pause_cost: float = 0.0
    ages = AGES

    def __post_init__(self) -> None:
        if not (0 <= self.move_cost < np.inf and 0 <= self.pause_cost < np.inf):
            raise UsageError(
                f"the cost of moving state must be at least 0 (got {self.move_cost:g} and {self.pause_cost:g})"
            )

    def decide(self, seen: Seen) -> Decided:
        """Fire if it is expected to save `MARGIN` times its cost."""
        shadows, record = seen.shadows, seen.record
        if len(shadows) < FEWEST:
            return Decided(False, f"proposals were compared in {len(shadows)} of {FEWEST} steps")
        busiest = np.mean([each.in_force for each in shadows])
        mean = np.mean([np.mean(each.in_force - np.array(each.proposed)) for each in shadows])
        if mean <= SMALL * busiest:
            return Decided(
                False, f"proposals save {mean / busiest:.1%} of the busiest channel's load, at most {SMALL:.0%}"
            )
        saved = _by_age(shadows)
        expected = (HOLDS * AGES + record.steps) / (1 + record.adopted)
        holds = min(expected, HOLDS * len(saved))
        worth = _expected_saving(saved, holds)
        cost = self.pause_cost + self.move_cost * seen.proposal().moved_state
        spent = record.adopted * self.pause_cost + self.move_cost * record.moved_state
        debt = max(spent - record.saved, 0.0)
        said = f"saves {worth:.3g} in {holds:.0f} steps, costs {cost:.3g}"
        said += f" and {debt:.3g} that earlier plans did not save" if debt else ""
        return Decided(worth > MARGIN * (cost + debt), said)


def _by_age(shadows: Sequence[Shadow]) -> Floats:
    """Mean saving a step by the age of a plan in steps, youngest first."""
    ages = range(max(len(each.proposed) for each in shadows))
    return np.array(
        [np.mean([each.in_force - each.proposed[age] for each in shadows if age < len(each.proposed)]) for age in ages]
    )


def _expected_saving(saved: Floats, steps: float) -> float:
    """What a plan saves over some steps, if its saving goes on falling."""
    half = len(saved) // 2
    young, old = saved[:half].mean() if half else 0.0, saved[-half:].mean()
    kept = min(1.0, max(old / young, 0.0)) ** (1 / (len(saved) - half)) if young > 0 else 0.0
    left = max(steps - len(saved), 0.0)
    return float(saved.sum() + old * (left if kept == 1 else kept * (1 - kept**left) / (1 - kept)))


def _over(ratio: float | None, alpha: float) -> float:
    return np.inf if ratio is None else ratio / alpha


def _ratio(ratio: float | None) -> str:
    return "without bound (a channel is empty)" if ratio is None else f"{ratio:.3f}"
