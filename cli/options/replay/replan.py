"""Options of `adapt replay replan`: when plans are decided on."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapt.cli.options.amounts import amount_of
from adapt.cli.options.groups import setting
from adapt.cli.options.replay.repartition import ChannelsOverTime
from adapt.core.errors import UsageError
from adapt.core.replan.names import TriggerName
from adapt.core.units.durations import duration_us

if TYPE_CHECKING:
    from adapt.core.partitioning.build import Recipe
    from adapt.core.replan.replay import Replan
    from adapt.traces.store.trace import Trace

AUTO = "auto"
"""A window derived from the first rows."""

DECISIONS = 10
"""Default number of decisions in a period."""


@dataclass(frozen=True, slots=True)
class LoopOptions(ChannelsOverTime):
    """When plans are adopted, and which rows they are built from."""

    period: str = setting("1h", "Period of trigger period.", "1h")
    trigger: list[TriggerName] | None = setting(
        None, "When to adopt a new plan; repeatable (default: each in a case of its own)."
    )
    step: str | None = setting(None, "How often triggers decide (default: a tenth of the period).", "6m")
    window: str | None = setting(
        None,
        "Recent rows that plans are built from (default: the period); auto: from the first step's keys.",
        "1h|1000rows|auto",
    )
    hold: str = setting("0s", "Trigger violation: how long the tolerance must be exceeded.", "10m")
    move_cost: float | None = setting(
        None,
        "Trigger worth: rows processed in the time of moving a row of state (default: by marshal-time).",
        "ROWS",
    )

    def replan(self, recipe: "Recipe", trace: "Trace", *, by_cost: bool, compares: bool) -> "Replan":
        """The loop with its triggers.

        Args:
            by_cost: Whether a row weighs its CPU time.

        Raises:
            UsageError: an option is out of its range.
        """
        from adapt.core.counting.sliding import LEAST_BUCKETS, SlidingWindow
        from adapt.core.replan.decisions import EVERYTHING, Loop
        from adapt.core.replan.replay import Replan
        from adapt.core.stage.input.keyed_rows import COST
        from adapt.core.stream import Weight
        from adapt.core.units.row_or_time_span import Length

        period_us = _above_0("--period", self.period)
        step_us = max(1, period_us // DECISIONS) if self.step is None else _above_0("--step", self.step)
        auto = self.window == AUTO
        loop = Loop(
            recipe,
            self.channel_schedule(),
            step_us,
            EVERYTHING if auto else SlidingWindow(Length.parse(self.window or self.period, "window")),
            trace.key_type,
            Weight.COST if by_cost else Weight.COUNT,
            COST if by_cost else None,
        )
        if auto:
            size = loop.derived_window(trace.batches).length.size
            # The whole trace does as well, down to a bucket of 1 / epsilon rows: no decision comes after its last row.
            rows = min(size, max(trace.rows, size // LEAST_BUCKETS))
            loop = replace(loop, window=SlidingWindow(Length(rows, in_rows=True)))
        triggers = tuple(dict.fromkeys(self.trigger or TriggerName))
        hold_us = amount_of("--hold", self.hold, duration_us)
        return Replan(loop, triggers, period_us, hold_us, self.move_cost, compares)


def _above_0(option: str, text: str) -> int:
    """An option's duration in microseconds."""
    value = amount_of(option, text, duration_us)
    if value <= 0:
        raise UsageError(f"{option} must be above 0 (got {text})")
    return value
