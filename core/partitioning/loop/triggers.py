"""Triggers of a new plan: period, violation, or worth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.partitioning.loop.proposal import Proposal
from adapt.core.partitioning.loop.shadows import Shadow, Shadows, Spent
from adapt.core.partitioning.measures.resources import RESOURCES
from adapt.core.values import duration

FEWEST = 2
"""Fewest steps in which `WhenWorth` compares proposals with the plan in force."""

LATELY = 4
"""Latest steps, and youngest proposals, in which a saving must show."""

SMALL = 0.03
"""Savings up to this share of the busiest channel's load are left alone."""

HOLDS = 5
"""How many times as long as it was seen a saving is expected to hold."""

MARGIN = 1.5
"""How many times its cost a plan must save: the first estimate that is high enough is likely too high."""

BEHIND = 0.02
"""Share of its cost by which `WhenWorth` may be behind the better of doing nothing and rebuilding."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known at a time, from earlier rows alone."""

    at_us: int  # time in microseconds
    full: bool  # whether a whole window was counted
    # measures max/min load of each resource over the window (r_k); None if a channel is empty
    ratios: Callable[[], Sequence[float | None]]
    tolerance: Sequence[float]  # tolerated max/min load of each (alpha_k)
    plan_since_us: int  # time since which the plan is in force
    shadows: Shadows | None  # plans that are not in force, if the trigger compares with some
    proposal: Callable[[], Proposal]  # builds the next plan from the counts, once


@dataclass(frozen=True, slots=True)
class Decided:
    """Decision of a trigger, with its reason."""

    fires: bool
    why: str


class Trigger(Protocol):
    """Decides at each step whether a new plan is adopted."""

    @property
    def shadow_us(self) -> int | None:
        """Period of the rebuild in `Seen.shadows`, in microseconds; None without shadows."""

    def decide(self, seen: Seen) -> Decided:
        """The decision at one step."""


@dataclass(frozen=True, slots=True)
class Never:
    """Keeps the plan."""

    shadow_us = None

    def decide(self, _: Seen) -> Decided:
        """Keep the plan."""
        return Decided(False, "no trigger")


@dataclass(frozen=True, slots=True)
class EveryPeriod:
    """Adopts a plan every period."""

    period_us: int
    shadow_us = None

    def decide(self, seen: Seen) -> Decided:
        """Fire once the plan is a period old."""
        age = seen.at_us - seen.plan_since_us
        if age >= self.period_us:
            return Decided(True, f"the period of {duration(self.period_us / 1e6)} is over")
        return Decided(False, f"{duration((self.period_us - age) / 1e6)} of the period remain")


@dataclass(slots=True)
class OnViolation:
    """Adopts a plan when an imbalance beyond tolerance lasts.

    Source: partitioning functions, section 3.4: balance constraints that must hold.
    """

    lasting_us: int
    shadow_us = None
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
            return Decided(False, f"beyond tolerance, but not for {duration(self.lasting_us / 1e6)} yet: {said}")
        self._since_us = None
        return Decided(True, f"beyond tolerance: {said}")


@dataclass(frozen=True, slots=True)
class WhenWorth:
    """Adopts a plan when what it saves exceeds what its migration costs.

    What it saves is seen on earlier proposals, which were not adopted: each step, the busiest channel of the plan in
    force against theirs. So a saving is known by the age of a plan. It is expected to go on as it changed with age, for
    `HOLDS` times as long as it was seen, and must be `MARGIN` times the cost. Two accounts run on the same
    rows: of doing nothing, and of a rebuild every period. Where the plans in force cost more than the cheaper one, by
    the share `BEHIND`, it follows that one: it keeps the plan, or adopts one that costs less than it fell behind since
    the last. All is in units of load, on the busiest channel.
    """

    period_us: int  # period of the rebuild that it is compared with
    move_cost: float = 1.0  # load that moving one unit of state costs the busiest channel
    pause_cost: float = 0.0  # load that any adoption costs

    def __post_init__(self) -> None:
        if not (0 <= self.move_cost < np.inf and 0 <= self.pause_cost < np.inf):
            raise UsageError(
                f"the cost of moving state must be at least 0 (got {self.move_cost:g} and {self.pause_cost:g})"
            )

    @property
    def shadow_us(self) -> int:
        """Period of the rebuild that it is compared with."""
        return self.period_us

    def decide(self, seen: Seen) -> Decided:
        """Follow the cheaper account, or fire if a plan pays."""
        assert seen.shadows is not None
        ways = seen.shadows.in_force, seen.shadows.never, seen.shadows.periodic
        spent, never, periodic = map(self._spent, ways)
        cheaper = min(never, periodic)
        if spent <= (1 + BEHIND) * cheaper or never == periodic:
            return self._if_it_pays(seen)
        if never < periodic:
            return Decided(False, f"{spent / cheaper - 1:.1%} behind doing nothing")
        then, periodic_then = map(self._spent, seen.shadows.at_adoption)
        lost, cost = (spent - then) - (periodic - periodic_then), self._cost(seen.proposal())
        if lost <= cost or not seen.proposal().moved_state:
            return self._if_it_pays(seen)
        return Decided(True, f"behind a rebuild every {duration(self.period_us / 1e6)}: lost {_against(lost, cost)}")

    def _if_it_pays(self, seen: Seen) -> Decided:
        """Fire if a plan is expected to save `MARGIN` times its cost."""
        assert seen.shadows is not None
        steps = list(seen.shadows.steps)
        if len(steps) < FEWEST:
            return Decided(False, f"proposals were compared in {len(steps)} of {FEWEST} steps")
        saved = _by_age(steps)
        busiest = np.mean([each.in_force for each in steps[-LATELY:]])
        lately = _by_age(steps[-LATELY:])[:LATELY].mean()
        if lately <= SMALL * busiest:
            return Decided(
                False,
                f"proposals save {lately / (busiest or 1):.1%} of the busiest channel's load, at most {SMALL:.0%}",
            )
        worth, cost = _expected_saving(saved, HOLDS * len(saved)), self._cost(seen.proposal())
        pays = worth > MARGIN * cost and seen.proposal().moved_state > 0
        said = "a plan pays" if pays else "no plan pays"
        return Decided(pays, f"{said}: saves {_against(worth, cost)} in {HOLDS * len(saved)} steps")

    def _spent(self, way: Spent) -> float:
        return way.cost(self.move_cost, self.pause_cost)

    def _cost(self, proposal: Proposal) -> float:
        return self.pause_cost + self.move_cost * proposal.moved_state


def _by_age(steps: Sequence[Shadow]) -> Floats:
    """Mean saving a step by the age of a plan in steps, youngest first; between measured ages on a line."""
    saved: dict[int, list[float]] = {}
    for step in steps:
        for age, load in step.proposed.items():
            saved.setdefault(age, []).append(step.in_force - load)
    ages = sorted(saved)
    return np.asarray(np.interp(np.arange(ages[-1] + 1), ages, [np.mean(saved[age]) for age in ages]))


def _expected_saving(saved: Floats, steps: int) -> float:
    """What a plan saves until it is best replaced, within some steps, if its saving goes on as it changed with age."""
    half = len(saved) // 2
    young, old = saved[:half].mean() if half else 0.0, saved[-half:].mean()
    kept = min(1.0, max(old / young, 0.0)) ** (1 / (len(saved) - half)) if young > 0 else 0.0
    left = max(steps - len(saved), 0)
    later = old * (left if kept == 1 else kept * (1 - kept**left) / (1 - kept))
    return float(max(np.cumsum(saved).max(), saved.sum() + later))


def _against(saved: float, cost: float) -> str:
    return f"{saved:.3g} against a cost of {cost:.3g}"


def _over(ratio: float | None, alpha: float) -> float:
    return np.inf if ratio is None else ratio / alpha


def _ratio(ratio: float | None) -> str:
    return "without bound (a channel is empty)" if ratio is None else f"{ratio:.3f}"
