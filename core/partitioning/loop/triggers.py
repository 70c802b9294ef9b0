"""Triggers of a new plan: period, violation, or worth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.partitioning.loop.proposal import Proposal
from adapt.core.statistics.student import student_quantile
from adapt.core.units.durations import duration_text

SURE = 0.8
"""Confidence that a plan saves more than it costs."""

FEWEST = 3
"""Fewest steps on which proposals were compared with the plan in force."""

RESOURCES = ("state", "computation", "network")
"""The resources whose balance is watched, in the order of their loads."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A step under the plan in force and under the last proposal.

    Attributes:
        in_force: Load of the busiest channel in the step, by the plan in force.
        proposed: The same by the proposal, which had not seen the step.
    """

    in_force: float
    proposed: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known at a time, from earlier rows alone.

    Attributes:
        at_us: Time in microseconds.
        full: Whether a whole window was counted.
        ratios: Max/min load of each resource over the window (r_k); None if a channel is empty.
        tolerance: Tolerated max/min load of each (alpha_k).
        plan_since_us: Time since which the plan is in force.
        lives_us: How long earlier plans were in force.
        shadows: Steps since the plan is in force.
        proposal: Builds the next plan from the counts, once.
    """

    at_us: int
    full: bool
    ratios: Sequence[float | None]
    tolerance: Sequence[float]
    plan_since_us: int
    lives_us: Sequence[int]
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
    def watches_proposals(self) -> bool:
        """Whether it needs `Seen.shadows`, for which each step builds a plan."""

    def decide(self, seen: Seen) -> Decided:
        """The decision at one step."""


@dataclass(frozen=True, slots=True)
class Never:
    """Keeps the plan."""

    watches_proposals = False

    def decide(self, _: Seen) -> Decided:
        """Keep the plan."""
        return Decided(False, "no trigger")


@dataclass(frozen=True, slots=True)
class EveryPeriod:
    """Adopts a plan every period."""

    period_us: int
    watches_proposals = False

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
    watches_proposals = False
    _since_us: int | None = field(default=None, repr=False)

    def decide(self, seen: Seen) -> Decided:
        """Fire once r_k > alpha_k has lasted, counted in whole windows."""
        if not seen.full:
            return Decided(False, "the window is not full yet")
        over = [_over(ratio, alpha) for ratio, alpha in zip(seen.ratios, seen.tolerance, strict=True)]
        worst, at = max(over), over.index(max(over))
        said = f"{RESOURCES[at]} load {_ratio(seen.ratios[at])} of tolerated {seen.tolerance[at]:g}"
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
    against that of the last proposal, which was built before the step. The plan is expected to live as long as earlier
    ones did, and as long as the one in force has by now. All is in units of load, on the busiest channel.

    Attributes:
        move_cost: Load that moving one unit of state costs the busiest channel.
        pause_cost: Load that any adoption costs.

    Raises:
        UsageError: a cost is below 0.
    """

    move_cost: float = 1.0
    pause_cost: float = 0.0
    watches_proposals = True

    def __post_init__(self) -> None:
        if not (0 <= self.move_cost < np.inf and 0 <= self.pause_cost < np.inf):
            raise UsageError(
                f"the cost of moving state must be at least 0 (got {self.move_cost:g} and {self.pause_cost:g})"
            )

    def decide(self, seen: Seen) -> Decided:
        """Fire if the plan saves more than it costs, with confidence `SURE`."""
        if len(seen.shadows) < FEWEST:
            return Decided(False, f"proposals were compared in {len(seen.shadows)} of {FEWEST} steps")
        saved = np.array([each.in_force - each.proposed for each in seen.shadows])
        error = float(saved.std(ddof=1)) / len(saved) ** 0.5
        a_step = float(saved.mean()) - student_quantile(SURE, len(saved) - 1) * error
        if a_step <= 0:
            return Decided(False, f"proposals do not surely save: {saved.mean():.3g} a step, {error:.3g} uncertain")
        age = seen.at_us - seen.plan_since_us
        life_us = float(np.mean([*seen.lives_us, age]))
        steps = life_us / age * len(saved)
        cost = self.pause_cost + self.move_cost * seen.proposal().moved_state
        said = f"saves {a_step * steps:.3g} in the {duration_text(round(life_us))} a plan lives, costs {cost:.3g}"
        return Decided(a_step * steps > cost, said)


def _over(ratio: float | None, alpha: float) -> float:
    return np.inf if ratio is None else ratio / alpha


def _ratio(ratio: float | None) -> str:
    return "without bound (a channel is empty)" if ratio is None else f"{ratio:.3f}"
