"""Triggers of a new plan: period, violation, or worth."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.counting.exact import KeyCounts
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.measures.imbalance import max_over_mean, max_over_min
from adapt.core.partitioning.measures.metrics import Migration
from adapt.core.partitioning.measures.plan_settings import refused
from adapt.core.partitioning.measures.resources import RESOURCES, ResourceFunction, Resources
from adapt.core.units.settings import SettingError

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
    """What is known at a step, from earlier rows alone."""

    at: int  # number of the step
    full: bool  # whether a whole window was counted
    since: int  # number of the step since which the plan is in force
    loads: Callable[[], Floats]  # loads of the channels over the window by the plan in force, shape (3, channels)
    shadows: Shadows | None  # plans that are not in force, if the trigger compares with some
    proposal: Callable[[], Candidate]  # builds the next plan from the counts, once


@dataclass(frozen=True, slots=True)
class Decided:
    """Decision of a trigger, with its reason."""

    fires: bool
    why: str


class Trigger(Protocol):
    """Decides at each step whether a new plan is adopted."""

    @property
    def shadows_every(self) -> int | None:
        """Steps between the rebuilds in `Seen.shadows`; None without shadows."""

    def decide(self, seen: Seen) -> Decided:
        """The decision at one step."""


@dataclass(frozen=True, slots=True)
class EveryPeriod:
    """Adopts a plan every period of some steps."""

    every: int
    period: str
    shadows_every = None

    def decide(self, seen: Seen) -> Decided:
        """Fire once a period is over."""
        left = (seen.since // self.every + 1) * self.every - seen.at
        if left <= 0:
            return Decided(True, f"the period of {self.period} is over")
        return Decided(False, f"{left} of {self.every} steps of the period remain")


@dataclass(slots=True)
class OnViolation:
    """Adopts a plan that repairs an imbalance beyond tolerance.

    A plan repairs it if it is within tolerance, or if its imbalance is lower by as much as is tolerated. Constant loads
    do not count: their imbalance is that of the number of keys, which no construction balances.

    Source: partitioning functions, section 3.4: balance constraints that must hold.
    """

    resources: Resources
    shadows_every = None

    def __post_init__(self) -> None:
        if not self._at:
            raise refused(
                "trigger violation needs a load that grows with rows; give {resources} LLL, or another trigger"
            )

    @property
    def _at(self) -> list[int]:
        """The resources that are not constant."""
        return [at for at, load in enumerate(self.resources.loads) if load is not ResourceFunction.CONSTANT]

    def decide(self, seen: Seen) -> Decided:
        """Fire if r_k > alpha_k and the proposal repairs it."""
        if not seen.full:
            return Decided(False, "the window is not full yet")
        now = seen.loads()
        at = max(self._at, key=lambda at: self._over(now, at))
        said = f"{RESOURCES[at]} load {_ratio(now[at])} of tolerated {self.resources.tolerance[at]:g}"
        if self._over(now, at) <= 1:
            return Decided(False, f"within tolerance: {said}")
        then = seen.proposal().loads
        reached = f"a new plan reaches {_ratio(then[at])}"
        if not self._is_repaired(now[at], then[at], self.resources.tolerance[at]):
            return Decided(False, f"beyond tolerance, and {reached} only: {said}")
        return Decided(True, f"beyond tolerance, and {reached}: {said}")

    def _over(self, loads: Floats, at: int) -> float:
        ratio = max_over_min(loads[at])
        return np.inf if ratio is None else ratio / self.resources.tolerance[at]

    @staticmethod
    def _is_repaired(now: Floats, then: Floats, tolerance: float) -> bool:
        """Whether max/min is within tolerance, or falls by it; max/mean if a channel is empty."""
        ratio = max_over_min(then)
        if ratio is None:
            before, after = max_over_mean(now) or 1.0, max_over_mean(then) or 1.0
        else:
            before, after = max_over_min(now) or np.inf, ratio
        return (ratio is not None and ratio <= tolerance) or before > tolerance * after


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

    every: int  # steps of the period of the rebuild that it is compared with
    period: str  # the same, as shown
    move_cost: float  # load that moving one unit of state costs the busiest channel

    def __post_init__(self) -> None:
        if not 0 <= self.move_cost < np.inf:
            raise SettingError(type(self), f"{{move_cost}} must be at least 0 (got {self.move_cost:g})")

    @property
    def shadows_every(self) -> int:
        """Steps between the rebuilds that it is compared with."""
        return self.every

    def decide(self, seen: Seen) -> Decided:
        """Follow the cheaper of both, or fire if a plan pays."""
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
        if lost <= cost or not seen.proposal().change.state:
            return self._if_it_pays(seen)
        return Decided(True, f"behind a rebuild every {self.period}: lost {_against(lost, cost)}")

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
        pays = worth > MARGIN * cost and seen.proposal().change.state > 0
        said = "a plan pays" if pays else "no plan pays"
        return Decided(pays, f"{said}: saves {_against(worth, cost)} in {HOLDS * len(saved)} steps")

    def _spent(self, way: Spent) -> float:
        return way.cost(self.move_cost)

    def _cost(self, proposal: Candidate) -> float:
        return self.move_cost * proposal.change.state


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


def _ratio(loads: Floats) -> str:
    ratio = max_over_min(loads)
    return "without bound (a channel is empty)" if ratio is None else f"{ratio:.3f}"
