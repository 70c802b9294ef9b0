"""Repartitioning replay: imbalance and migration period by period."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from adapt.core.counting.exact import frequencies_of
from adapt.core.engines.names import AnyScheme
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.repartition.channel_schedule import Schedule
from adapt.core.partitioning.repartition.period_tables import (
    PeriodOutcome,
    channels_table,
    periods_table,
    summary_table,
)
from adapt.core.partitioning.repartition.periods import Period, periods
from adapt.core.partitioning.repartition.plan_in_force import PlanInForce, imbalance_of_nothing
from adapt.core.run import run_as_data
from adapt.core.stream import Weight
from adapt.core.table import Displayed, Table
from adapt.core.units.row_or_time_span import Length


@dataclass(frozen=True, slots=True, repr=False)
class RepartitionRun(Displayed):
    """Result of a repartitioning replay.

    Attributes:
        parameters: Everything but the stream that determines the result; JSON data.
    """

    mechanism: ClassVar[str] = "repartition"

    outcomes: tuple[PeriodOutcome, ...]
    parameters: Mapping[str, Any]

    def summary(self) -> Table:
        """The run in one row."""
        return summary_table(self.outcomes)

    def tables(self) -> dict[str, Table]:
        """`periods`, one row each, and `channels`, one row per period and channel."""
        return {"periods": periods_table(self.outcomes), "channels": channels_table(self.outcomes)}

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def displayed(self) -> list[Table]:
        """Summary and periods."""
        return [self.summary(), periods_table(self.outcomes)]


def replay_repartition(
    batches: Iterable[pa.RecordBatch],
    length: Length,
    schedule: Schedule,
    recipe: Recipe,
    *,
    weight: Weight = Weight.COUNT,
    weight_column: str | None = None,
    clock: Callable[[], float] | None = None,
    today: AnyScheme | None = None,
) -> RepartitionRun:
    """Route, measure and repartition a stream period by period.

    The plan of a period is built at the end of the one before, from its frequencies, for the channel count of the
    schedule at the start of the period: a rescale inside a period takes effect at the next. The first period uses
    hashing alone, the scheme without pinned keys. Nothing is built after the last period.

    A plan change migrates the state of the keys in the period just ended, whose frequencies the new plan is built from;
    a key that did not occur in it has no state. Migration is reported with the period that starts with it, next to the
    imbalance that it bought.

    Args:
        batches: Rows in time order, as `periods` takes them.
        length: Length of a period; periods without rows are skipped, and keep the plan.
        schedule: Channel counts by time since the first row.
        weight: The weight of a row, in `weight_column` unless it is a count.
        today: What places keys now, such as an engine: measured as well, with nothing moved.

    Raises:
        BadInput: the rows are not in time order, or the weight of a key is below 0.
        ValueError: a weight is given without its column, or a column without its weight.

    Source: partitioning functions, sections 3.3 and 4.1; the paper does not say which frequencies a migration counts.
    """
    if (weight is Weight.COUNT) != (weight_column is None):
        raise ValueError(f"weight {weight} does not match weight column {weight_column}")
    parameters = {
        "period": str(length),
        "schedule": str(schedule),
        "weight": weight.value,
        **({} if today is None else {"today": today.value}),
        **recipe.as_data(),
    }
    counted = periods(batches, length, weight_column)
    return RepartitionRun(tuple(_outcomes(counted, schedule, recipe, weight, clock, today)), parameters)


def _outcomes(
    counted: Iterable[Period],
    schedule: Schedule,
    recipe: Recipe,
    weight: Weight,
    clock: Callable[[], float] | None,
    today: AnyScheme | None,
) -> Iterator[PeriodOutcome]:
    """Route and measure each period, a new plan before each but the first."""
    plan = PlanInForce(recipe, schedule.channels_at(0), clock)
    origin_us: int | None = None
    for period in counted:
        if origin_us is None:
            origin_us = period.start_us
        else:
            plan.rebuild(schedule.channels_at(period.start_us - origin_us))
        frequencies = frequencies_of(period.counted, weight, recipe.key_type)
        metrics, loads = plan.route(frequencies)
        yield PeriodOutcome(
            index=period.index,
            start_us=period.start_us,
            end_us=period.end_us,
            rows=frequencies.rows,
            keys=frequencies.distinct,
            metrics=metrics,
            loads=loads,
            build_s=plan.build_s,
            nothing=None if today is None else imbalance_of_nothing(today, len(loads[0]), recipe, frequencies),
        )
