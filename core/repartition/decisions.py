"""Route, count, decide, adopt: plans over a stream, step by step."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.sliding import SlidingWindow
from adapt.core.engines.names import AnyScheme
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.measures.imbalance import channel_loads, max_over_mean
from adapt.core.partitioning.measures.metrics import Metrics, Migration, measure, migration
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import listed_loads
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.problem.at_random import settled, spread_at_random
from adapt.core.partitioning.problem.constraints import refuse_unhonoured
from adapt.core.partitioning.problem.tracking import epsilon_for
from adapt.core.repartition.names import TriggerName
from adapt.core.repartition.periods import Period, PeriodOutcome, RecentKeys, periods
from adapt.core.repartition.triggers import (
    Candidate,
    Decided,
    EveryPeriod,
    OnViolation,
    Seen,
    Shadows,
    Trigger,
    WhenWorth,
)
from adapt.core.stage.conditions.settings import Costs
from adapt.core.stream import Weight
from adapt.core.units.durations import duration_text, duration_us
from adapt.core.units.row_or_time_span import Length
from adapt.core.units.settings import SettingError

_EXAMPLE = "such as 8, or 0h:8,6h:12"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Channel counts by time since the first row of a trace."""

    # microseconds since the first row, and the channel count from then on; the first at 0, strictly rising
    steps: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise _refused(f"{{schedule}} needs at least one channel count, {_EXAMPLE}")
        if self.steps[0][0] != 0:
            raise _refused(f"{{schedule}} must start at 0h, {_EXAMPLE} (got {duration_text(self.steps[0][0])})")
        for (before, _), (after, _) in pairwise(self.steps):
            if after <= before:
                raise _refused(
                    f"{{schedule}} must have rising times (got {duration_text(after)} after {duration_text(before)})"
                )
        for _, channels in self.steps:
            if not 1 <= channels < 2**31:
                raise UsageError(f"the number of channels must be from 1 to 2147483647 (got {channels})")

    @classmethod
    def fixed(cls, channels: int) -> "Schedule":
        """A fixed channel count."""
        return cls(((0, channels),))

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """A schedule as typed: `8`, or `0h:8,6h:12`.

        The latter has 8 channels from the first row on, 12 from 6 hours later on.
        """
        if ":" not in text and "," not in text:
            return cls.fixed(_count(text, text))
        return cls(tuple(_step(part) for part in text.split(",")))

    def channels_at(self, offset_us: int) -> int:
        """The channel count at a time since the first row.

        In microseconds from 0.
        """
        return self.steps[bisect_right(self.steps, offset_us, key=lambda step: step[0]) - 1][1]

    def __str__(self) -> str:
        """The text that `parse` reads."""
        if len(self.steps) == 1:
            return str(self.steps[0][1])
        return ",".join(f"{duration_text(at)}:{channels}" for at, channels in self.steps)


def _refused(text: str) -> SettingError:
    return SettingError(Replan, text)


def _step(part: str) -> tuple[int, int]:
    time, colon, count = part.partition(":")
    if not colon:
        raise _refused(f"{{schedule}}: step {part!r} has no time; write it {_EXAMPLE}")
    try:
        at = duration_us(time)
    except UsageError as error:
        raise _refused(f"{{schedule}}: step {part!r}: {error}") from error
    return at, _count(count, part)


def _count(text: str, part: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise _refused(f"{{schedule}}: {part!r} needs a number of channels, {_EXAMPLE} (got {text!r})")
    return int(digits)


Batches: TypeAlias = Callable[[list[str]], Iterable[pa.RecordBatch]]
"""Reads these columns of a stream in time order, as often as it is called."""

DECISIONS = 10
"""Default number of decisions in a period, of a trigger that looks for a reason."""

MOST_STEPS = 100_000
"""Most steps of a replay."""

AUTO = "auto"
"""A window derived from the keys of the first step."""


@dataclass(frozen=True, slots=True)
class Replan:
    """How plans are built, and when they are adopted."""

    recipe: Recipe  # how plans are built
    schedule: Schedule  # channel counts by time since the first row
    period: Length  # period of trigger period, and of the rebuild that trigger worth compares with
    trigger: TriggerName = TriggerName.PERIOD  # when a new plan is adopted
    # time or rows between decisions; a period is a whole number of them. Default: the period with trigger period,
    # else a tenth of it
    step: Length | None = None
    window: Length | None = None  # the recent rows that plans are built from, in whole steps. Default: a period
    auto_window: bool = False
    # rows that a worker processes in the time of moving one row of state. Default: by the costs
    move_cost: float | None = None
    costs: Costs = field(default_factory=Costs)  # costs of the stage
    weight: Weight = Weight.COUNT  # the weight of a row, in `weight_column` unless it is a count
    weight_column: str | None = None
    today: AnyScheme | None = None  # what places keys now, measured as well. Default: not measured

    def __post_init__(self) -> None:
        if (self.weight is Weight.COUNT) != (self.weight_column is None):
            raise ValueError(f"weight {self.weight} does not match weight column {self.weight_column}")
        if self.step is not None and (self.step.in_rows != self.period.in_rows or self.period.size % self.step.size):
            raise _refused(
                f"{{step}} {self.step} must divide {{period}} {self.period}; give a tenth of it, or another part"
            )
        refuse_unhonoured(self.recipe.scheme, self.recipe.construction, self.recipe.given)

    @property
    def every(self) -> int:
        """Steps of a period."""
        if self.step is not None:
            return self.period.size // self.step.size
        if self.trigger is TriggerName.PERIOD:
            return 1
        return next(parts for parts in range(DECISIONS, 0, -1) if self.period.size % parts == 0)

    @property
    def step_length(self) -> Length:
        """Time or rows between decisions."""
        return replace(self.period, size=self.period.size // self.every)

    @property
    def pool(self) -> int:
        """The most channels at any time."""
        return max(channels for _, channels in self.schedule.steps)

    def check_steps(self, rows: int, span_us: int) -> None:
        """Refuse more steps than a replay can have."""
        step = self.step_length
        steps = -(-(rows if step.in_rows else span_us + 1) // step.size)
        if steps > MOST_STEPS:
            has = f"{rows:,} rows" if step.in_rows else duration_text(span_us)
            raise _refused(
                f"steps of {step} divide the trace, which has {has}, into {steps:,} steps, and at most {MOST_STEPS:,}"
                " are possible; give a longer {period} or {step}"
            )

    def steps(self, batches: Batches, *, weighed: bool = True) -> Iterator[Period]:
        """The counted keys of each step that has rows.

        Args:
            weighed: Whether rows have their weight, or are counted.
        """
        column = self.weight_column if weighed else None
        return periods(batches(["ts", "key", *([column] if column else [])]), self.step_length, column)

    def window_of(self, first: Period) -> Length:
        """The window of a stream with this first step.

        Source: partitioning functions, section 4.1.2.
        """
        if not self.auto_window:
            return self.window or self.period
        distinct, channels = len(first.counted.keys), self.schedule.channels_at(0)
        epsilon = epsilon_for(self.recipe.resources, channels, distinct, self.recipe.max_pins)
        return SlidingWindow.derived(distinct, epsilon).length

    def frequencies(self, counted: KeyCounts, channels: int, scheme: AnyScheme | None = None) -> Frequencies:
        """Frequencies of keys; null keys at random are spread over channels."""
        found = frequencies_of(counted, self.weight, self.recipe.key_type)
        spread = spread_at_random(found, scheme or self.recipe.hashing, channels, self.recipe.constraints.pinned)
        return spread.frequencies if isinstance(spread, Population) else spread

    def unpinned(self, channels: int, scheme: AnyScheme | None = None) -> Partitioner:
        """The partitioner of a scheme without pinned keys."""
        recipe = self.recipe
        return make_partitioner(
            *(scheme or recipe.hashing, channels, recipe.hash, recipe.replicas),
            max_parallelism=recipe.max_parallelism,
            key_type=recipe.key_type,
        )

    def made(self) -> Trigger:
        """The trigger at its start."""
        if self.trigger is TriggerName.PERIOD:
            return EveryPeriod(self.every, str(self.period))
        if self.trigger is TriggerName.VIOLATION:
            return OnViolation(self.recipe.resources)
        return WhenWorth(self.every, str(self.period), self.cost_of_moving)

    @property
    def cost_of_moving(self) -> float:
        """Rows that a worker processes while a row of state moves."""
        return 2 * self.costs.marshal_s / self.costs.service_s if self.move_cost is None else self.move_cost

    def as_data(self) -> dict[str, Any]:
        """All parameters, as JSON data."""
        return {
            "trigger": self.trigger.value,
            "period": str(self.period),
            "step": str(self.step_length),
            "window": AUTO if self.auto_window else str(self.window or self.period),
            **({"move_cost": self.cost_of_moving} if self.trigger is TriggerName.WORTH else {}),
            "schedule": str(self.schedule),
            "weight": self.weight.value,
            **({} if self.today is None else {"today": self.today.value}),
            **self.recipe.as_data(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step: the decision at its start, and its measurements."""

    at_us: int  # its start
    partitioner: Partitioner  # the plan in force from then on
    outcome: PeriodOutcome  # its measurements, with the decision


def decided(replan: Replan, batches: Batches, clock: Callable[[], float] | None = None) -> Iterator[Step]:
    """Route, measure and re-plan a stream step by step.

    At the start of each step that has rows, the trigger decides from earlier rows alone; a change of the number of
    channels is always adopted, at the first step after it. So a stream cut at any row has the same decisions up to
    there. The first step uses hashing alone. A plan is built from the window before it, whose state migrates: a key
    that did not occur in it has no state.

    Args:
        clock: Returns seconds, for build times.

    Source: partitioning functions, sections 3.3 and 4.1; the paper does not say which frequencies a migration counts.
    """
    loop: _Loop | None = None
    for period in replan.steps(batches):
        if loop is None:
            loop = _Loop(replan, period, clock)
        yield loop.step(period)


class _Loop:
    """The plan in force, its window, and the memory of triggers."""

    def __init__(self, replan: Replan, first: Period, clock: Callable[[], float] | None) -> None:
        self._replan, self._clock = replan, clock
        self._trigger = replan.made()
        self._origin_us, self._since = first.start_us, first.index
        self._partitioner = replan.unpinned(replan.schedule.channels_at(0))
        self._nothing: Partitioner | None = None
        self._recent = RecentKeys(replan.window_of(first))
        self._shadows = self._shadowed(first.index)

    def step(self, period: Period) -> Step:
        """Decide at the start of a step, and measure it."""
        self._recent.move_to(period.start_us)
        decided, proposal = self._decide(period)
        adopted = proposal if decided.fires else None
        if adopted is not None:
            self._adopt(adopted, period.index)
        if self._shadows is not None:
            self._shadows.begin(proposal if adopted is None else None)
        outcome = self._measured(period, decided, adopted)
        if self._shadows is not None:
            self._shadows.take(period.counted)
            self._shadows.end(outcome.loads[2])
        self._recent.add(period)
        return Step(period.start_us, self._partitioner, outcome)

    def _decide(self, period: Period) -> tuple[Decided, Candidate | None]:
        """The decision, and the proposal if one was built."""
        if self._recent.is_empty:
            return Decided(False, "nothing is counted yet"), None
        present = self._partitioner.channels
        wanted = self._replan.schedule.channels_at(period.start_us - self._origin_us)
        if wanted != present:
            return Decided(True, f"channels change from {present} to {wanted}"), self._propose(wanted)
        shadows, built = self._shadows, list[Candidate]()

        def proposal() -> Candidate:
            if not built:
                built.append(self._propose(present))
            return built[0]

        if shadows is not None and shadows.is_due(period.index):
            shadows.rebuild(self._propose(present, shadows.rebuilt), period.index)
        seen = Seen(
            *(period.index, self._recent.full, self._since),
            lambda: self._loads(present),
            *(shadows, proposal),
        )
        decided = self._trigger.decide(seen)
        if decided.fires or shadows is not None:
            proposal()
        return decided, built[0] if built else None

    def _propose(self, channels: int, current: Partitioner | None = None) -> Candidate:
        """A plan from the window, after the one in force by default."""
        replan, current = self._replan, current or self._partitioner
        counted = replan.frequencies(self._recent.counted(), channels)
        started = self._clock() if self._clock else 0.0
        built = build_partitioner(counted, replan.recipe, channels, current)
        build_s = self._clock() - started if self._clock else None
        after = built.channels_of(counted.keys)
        before = settled(current.channels_of(counted.keys), after, counted)
        change = migration(before, after, listed_loads(counted, replan.recipe.resources.state), channels)
        return Candidate(built, change, channel_loads(after, counted, replan.recipe.resources, channels), build_s)

    def _loads(self, channels: int) -> Floats:
        """Loads of the channels over the window, by the plan in force."""
        counted = self._replan.frequencies(self._recent.counted(), channels)
        placed = self._partitioner.channels_of(counted.keys)
        return channel_loads(placed, counted, self._replan.recipe.resources, channels)

    def _adopt(self, adopted: Candidate, at: int) -> None:
        """Put a plan in force; a rescale starts new shadows."""
        channels, self._partitioner = self._partitioner.channels, adopted.partitioner
        self._since = at
        if adopted.partitioner.channels != channels:
            self._shadows = self._shadowed(at)
        elif self._shadows is not None:
            self._shadows.adopt(adopted)

    def _shadowed(self, at: int) -> Shadows | None:
        every = self._trigger.shadows_every
        return None if every is None else Shadows(self._partitioner, every, at)

    def _measured(self, period: Period, decided: Decided, adopted: Candidate | None) -> PeriodOutcome:
        """Measurements of a step under the plan in force."""
        replan, partitioner = self._replan, self._partitioner
        channels, capacities = partitioner.channels, replan.recipe.constraints.unequal
        counted = replan.frequencies(period.counted, channels)
        placed = partitioner.channels_of(counted.keys)
        loads = channel_loads(placed, counted, replan.recipe.resources, channels)
        metrics = measure(partitioner, counted, replan.recipe.resources, placed, loads, capacities=capacities)
        return PeriodOutcome(
            index=period.index,
            start_us=period.start_us,
            end_us=period.end_us,
            rows=period.counted.rows,
            keys=len(period.counted.keys),
            metrics=metrics if adopted is None else _with_migration(metrics, adopted.change),
            loads=loads,
            build_s=None if adopted is None else adopted.build_s,
            adopts=adopted is not None,
            why=decided.why,
            nothing=self._imbalance_of_nothing(period, channels),
        )

    def _imbalance_of_nothing(self, period: Period, channels: int) -> float | None:
        """Imbalance of a step if today's placement were kept; None without load."""
        replan = self._replan
        if replan.today is None:
            return None
        if self._nothing is None or self._nothing.channels != channels:
            self._nothing = replan.unpinned(channels, replan.today)
        counted = replan.frequencies(period.counted, channels, replan.today)
        loads = channel_loads(self._nothing.channels_of(counted.keys), counted, replan.recipe.resources, channels)
        return max_over_mean(loads[2], replan.recipe.constraints.unequal)


def _with_migration(metrics: Metrics, change: Migration) -> Metrics:
    """The metrics with the migration of a plan change."""
    b, m = metrics.b, change.relative
    return replace(
        metrics,
        m=m,
        b_times_1_plus_m=None if b is None or m is None else b * (1 + m),
        keys_moved=change.keys,
        state_moved=change.state,
    )
