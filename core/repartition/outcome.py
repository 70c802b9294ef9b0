"""Outcome of one case of a live replay."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.repartition.channel_schedule import Schedule
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.outcome import Outcome


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
    for number, busy_s in enumerate(_busy(outcome.simulated.intervals, per_period)):
        channels = schedule.channels_at(number * period_us)
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
