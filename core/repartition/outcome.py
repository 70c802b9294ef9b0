"""Outcome of one case of a live replay, and its tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.metrics import column_named, columns_named
from adapt.core.phrases import counted
from adapt.core.repartition.decisions import Schedule
from adapt.core.repartition.names import IN_SAMPLE, STATIC
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.outcome import QUEUEING, Outcome
from adapt.core.table import Cell, Column, Table
from adapt.core.values import duration, number, size


@dataclass(frozen=True, slots=True, eq=False)
class LiveOutcome:
    """One case: its stage and its busiest workers."""

    outcome: Outcome  # rows, latencies and moves of the stage
    # busy time of the busiest worker of each period, summed up. Migration counts, as workers (de)serialize state
    busiest_s: float
    mean_s: float  # the same of the mean worker
    worst: float | None  # imbalance of the worst period; None if no worker was ever busy

    @property
    def case(self) -> str:
        """The name of the case."""
        return self.outcome.case

    @property
    def imbalance(self) -> float | None:
        """Busy time of the busiest worker / mean, over all periods.

        None if no worker was busy.
        """
        return self.busiest_s / self.mean_s if self.mean_s else None

    @property
    def migrations(self) -> int:
        """How often partitions moved."""
        simulated = self.outcome.simulated
        return sum(bool(step.moves) for step in simulated.steps) + sum(bool(one.moves) for one in simulated.rounds)


def live_outcome_of(outcome: Outcome, schedule: Schedule, per_period: int, period_us: int) -> LiveOutcome:
    """The outcome of a case.

    Args:
        per_period: Sampling intervals of each period.
    """
    busiest, mean, worst = 0.0, 0.0, None
    for period, busy_s in enumerate(_busy(outcome.simulated.intervals, per_period)):
        channels = schedule.channels_at(period * period_us)
        most, even = float(busy_s.max()), float(busy_s.sum()) / channels
        busiest, mean = busiest + most, mean + even
        if even > 0:
            worst = max(worst or 0.0, most / even)
    return LiveOutcome(outcome, busiest, mean, worst)


def _busy(intervals: Sequence[Interval], per_period: int) -> Iterator[Floats]:
    """Busy seconds of each worker, period by period."""
    for first in range(0, len(intervals), per_period):
        part = intervals[first : first + per_period]
        yield np.sum([(1 - one.idle) * (one.end_s - one.start_s) for one in part], axis=0)


GAINS = 0.02
"""Share of the busiest worker's time from which re-planning gains anything."""

CASE = Column("case", about="static (do nothing), a trigger, Flux on partitions, or an in-sample plan")

CASE_COLUMNS = (
    CASE,
    *columns_named("busiest_time imbalance imbalance_max migrations moves state_moved_bytes latency_p50 latency_p99"),
    QUEUEING,
    *columns_named("lag_max drain processed unprocessed"),
)

LIVE_COLUMNS = (
    Column("verdict"),
    column_named("static_full_at"),
)
"""What a live replay adds to the summary."""


def cases_table(outcomes: Sequence[LiveOutcome]) -> Table:
    """One row per case."""
    return Table.from_rows("Cases", CASE_COLUMNS, [_case(each) for each in outcomes])


def live_summary(
    periods: Table, outcomes: Sequence[LiveOutcome], trigger: str, bounds: Bounds, speedup: float
) -> Table:
    """The summary of the periods, with the verdict."""
    full_at = speedup / bounds.static_load if bounds.static_load else None
    said = " ".join([_compared(outcomes, trigger), *_full(full_at)])
    (row,) = periods.rows
    columns = (LIVE_COLUMNS[0], *periods.columns, LIVE_COLUMNS[1])
    return Table.from_rows(periods.title, columns, [(said, *row, full_at)])


def _case(one: LiveOutcome) -> list[Cell]:
    outcome = one.outcome
    latencies = (outcome.total.share_below_s(share) for share in (0.5, 0.99))
    moved = one.migrations, len(outcome.simulated.moves), outcome.moved_bytes
    waited = outcome.lag, outcome.late_s, outcome.processed, outcome.left
    return [one.case, one.busiest_s, one.imbalance, one.worst, *moved, *latencies, outcome.queueing, *waited]


def _compared(outcomes: Sequence[LiveOutcome], trigger: str) -> str:
    by_case = {each.case: each for each in outcomes}
    best, static, in_sample = by_case[trigger], by_case[STATIC], by_case.get(IN_SAMPLE)
    took = [f"doing nothing {_time(static)}"]
    took += [] if in_sample is None else [f"a plan built from the whole trace {_time(in_sample)}"]
    if best.busiest_s > (1 - GAINS) * static.busiest_s:
        saved = max(0.0, 1 - best.busiest_s / static.busiest_s)
        return f"Keep today's placement: re-planning saves at most {saved:.1%} of the busiest workers' time."
    latencies = (each.outcome.total.share_below_s(0.99) for each in (best, static))
    p99, p99_static = (duration(each or 0.0) for each in latencies)
    return (
        f"Re-plan by {best.case}: the busiest workers are busy for {_time(best)}; {', '.join(took)}. It migrates"
        f" {counted(best.migrations, 'time')} ({size(best.outcome.moved_bytes)}), and the p99 latency is {p99},"
        f" {p99_static} when doing nothing."
    )


def _time(one: LiveOutcome) -> str:
    return duration(one.busiest_s)


def _full(full_at: float | None) -> list[str]:
    return (
        [] if full_at is None else [f"Without re-planning, the busiest worker is full at speed-up {number(full_at)}."]
    )
