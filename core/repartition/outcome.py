"""Outcome of one case of a live replay, and its tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.metrics import columns_named
from adapt.core.phrases import counted
from adapt.core.repartition.decisions import Schedule
from adapt.core.repartition.names import IN_SAMPLE, STATIC
from adapt.core.repartition.periods import GAINS
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.outcome import CALM, QUEUEING, Outcome
from adapt.core.table import Cell, Column, Table
from adapt.core.values import duration, size


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


BRIEF = (
    "case, busiest_time: busiest worker's time, imbalance, migrations, state_moved_bytes: state moved, latency_p99: p99"
)
"""Columns of cases shown below the conclusion, and their headings."""

CASE = Column("case", about="static (do nothing), a trigger, Flux on partitions, or an in-sample plan")

CASE_COLUMNS = (
    CASE,
    *columns_named("busiest_time imbalance imbalance_max migrations moves state_moved_bytes latency_p50 latency_p99"),
    QUEUEING,
    *columns_named("lag_max drain processed unprocessed"),
)


def cases_table(outcomes: Sequence[LiveOutcome]) -> Table:
    """One row per case."""
    return Table.from_rows("Cases", CASE_COLUMNS, [_case(each) for each in outcomes])


def _case(one: LiveOutcome) -> list[Cell]:
    outcome = one.outcome
    latencies = (outcome.total.share_below_s(share) for share in (0.5, 0.99))
    moved = one.migrations, len(outcome.simulated.moves), outcome.moved_bytes
    waited = outcome.lag, outcome.late_s, outcome.processed, outcome.left
    return [one.case, one.busiest_s, one.imbalance, one.worst, *moved, *latencies, outcome.queueing, *waited]


def live_conclusion(outcomes: Sequence[LiveOutcome], trigger: str, when: str) -> str:
    """Whether to rebuild, by the busiest workers' time.

    Args:
        when: The trigger in words, such as `every 6h`.
    """
    by_case = {each.case: each for each in outcomes}
    best, today, in_sample = by_case[trigger], by_case[STATIC], by_case.get(IN_SAMPLE)
    (p99, moved), (p99_today, _) = _costs(best), _costs(today)
    beyond = "" if in_sample is None else f" A plan built from the whole trace would take {_time(in_sample)}."
    if is_worth(best, today):
        return (
            f"Rebuild {when}: the busiest workers are busy for {_time(best)} instead of {_time(today)} today, p99"
            f" {p99} instead of {p99_today}, with {moved}.{beyond}"
        )
    return (
        f"Rebuilding {when} does not help: the busiest workers are busy for {_time(best)}, {_time(today)} today, p99"
        f" {p99}, {p99_today} today, with {moved}.{beyond}"
    )


def is_worth(best: LiveOutcome, today: LiveOutcome) -> bool:
    """Whether rebuilds save time and do not cost latency."""
    p99, p99_today = (each.outcome.total.share_below_s(0.99) or 0.0 for each in (best, today))
    return best.busiest_s <= (1 - GAINS) * today.busiest_s and p99 <= CALM * p99_today


def _costs(one: LiveOutcome) -> tuple[str, str]:
    """The p99 latency, and the state moved."""
    moved = f"{counted(one.migrations, 'migration')} of {size(one.outcome.moved_bytes)}"
    return duration(one.outcome.total.share_below_s(0.99) or 0.0), moved


def _time(one: LiveOutcome) -> str:
    return duration(one.busiest_s)
