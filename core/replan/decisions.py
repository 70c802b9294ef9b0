"""Decisions of the splitter's loop over a stream, before it is staged."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from adapt.core.counting.sliding import SlidingWindow
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.loop.live import Step, run_loop, times_of
from adapt.core.partitioning.loop.splitter import Splitter, unpinned
from adapt.core.partitioning.loop.triggers import Trigger
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.repartition.channel_schedule import Schedule
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.replan.names import IN_SAMPLE, STATIC
from adapt.core.stage.input.keyed_rows import KEY, TIME
from adapt.core.stream import KeyType, Weight
from adapt.core.units.row_or_time_span import Length

Batches: TypeAlias = Callable[[list[str]], Iterable[pa.RecordBatch]]
"""Reads these columns of a stream in time order, as often as it is called."""

EVERYTHING = SlidingWindow(Length(2**62, in_rows=True))
"""A window over any stream."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The plans of a case over time.

    Attributes:
        plans: Each plan, with the microseconds since the first row at which it comes into force.
        steps: Decisions of the loop; empty without a trigger.
    """

    case: str
    plans: list[tuple[int, Plan]]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """The splitter's loop, without its trigger.

    Attributes:
        recipe: How plans are built.
        schedule: Numbers of channels by time since the first row.
        step_us: Time between decisions, in microseconds.
        window: The recent rows that plans are built from.
        key_type: Type of the keys.
        weight: The weight of a row.
        weight_column: Its column, unless rows are counted.
    """

    recipe: Recipe
    schedule: Schedule
    step_us: int
    window: SlidingWindow
    key_type: KeyType = KeyType.STRING
    weight: Weight = Weight.COUNT
    weight_column: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return [TIME, KEY, *([self.weight_column] if self.weight_column else [])]

    def static(self) -> Planned:
        """Hashing alone, at each number of channels."""
        plans = [(at_us, unpinned(self.recipe, channels, self.key_type)) for at_us, channels in self.schedule.steps]
        return Planned(STATIC, plans)

    def decided(self, case: str, trigger: Trigger, batches: Batches) -> Planned:
        """The plans that a trigger adopts.

        Raises:
            UsageError: the recipe or the window is invalid.
            BadInput: the rows are not in time order, or a row has no time.
        """
        ran = run_loop(
            *(batches(self.columns), self._splitter(self.window), trigger, self.schedule, self.step_us),
            resources=self.recipe.resources,
            weight_column=self.weight_column,
        )
        steps = tuple(ran)
        changes = [step for at, step in enumerate(steps) if at == 0 or step.adopted is not None]
        return Planned(case, [(step.at_us - steps[0].at_us, step.plan) for step in changes], steps)

    def in_sample(self, batches: Batches) -> Planned:
        """Plans from counts of the whole stream, in force from the start."""
        splitter = self._splitter(EVERYTHING)
        for batch in batches(self.columns):
            column = self.weight_column
            weights = None if column is None else batch.column(column).fill_null(0).to_numpy()
            splitter.observe(batch.column(KEY), weights)
        plans = []
        for at_us, channels in self.schedule.steps:
            splitter.adopt(splitter.propose(channels))
            plans.append((at_us, splitter.plan))
        return Planned(IN_SAMPLE, plans)

    def derived_window(self, batches: Batches) -> SlidingWindow:
        """Window of a constant factor of the keys of the first step.

        No plan is decided on before these rows were seen. Keys that come later do not lengthen it.

        Raises:
            UsageError: the recipe is invalid.
            BadInput: a row has no time.

        Source: partitioning functions, section 4.1.2.
        """
        splitter = replace(self, weight=Weight.COUNT)._splitter(EVERYTHING)
        until_us: int | None = None
        for batch in batches([TIME, KEY]):
            times = times_of(batch)
            if not len(times):
                continue
            until_us = int(times[0]) + self.step_us if until_us is None else until_us
            before = times < until_us
            splitter.observe(batch.column(KEY).filter(pa.array(before)))
            if not before.all():
                break
        counted = splitter.counted()
        return SlidingWindow.derived(counted.distinct, counted.epsilon)

    def _splitter(self, window: SlidingWindow) -> Splitter:
        first = self.schedule.channels_at(0)
        return Splitter(first, self.recipe, window=window, key_type=self.key_type, weight=self.weight)


def ever_pinned(plans: Iterable[Plan]) -> ExplicitMap:
    """All keys that some plan pins, numbered in key order."""
    keys = pa.chunked_array([plan.explicit.column for plan in plans]).unique()
    return ExplicitMap(ExplicitMap(keys, np.zeros(len(keys))).column, np.arange(len(keys)))
