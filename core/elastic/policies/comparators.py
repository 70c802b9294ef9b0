"""Scalers as others have them, to be held against thresholds."""

import math
from dataclasses import dataclass

from adapt.core.elastic.policies.thresholds import workers_for
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Seen


@dataclass(frozen=True, slots=True)
class FixedWorkers:
    """Wants the workers that there are."""

    def wanted(self, seen: Seen) -> int:
        """m."""
        return seen.workers


@dataclass(frozen=True, slots=True)
class TrueRates:
    """Wants, in one step, as many workers as the input needs if each goes on as it does while it works.

    The true rate of a worker is what it processes in a second of work, not of time, so that waiting for input, or being
    held back, does not count. Where nothing was processed there is none to go by.

    Attributes:
        utilization: The share of the time in which workers are to work, in (0, 1]; DS2 itself has 1.

    Source: Kalavri et al., "Three steps is all you need", OSDI 2018.
    """

    utilization: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.utilization <= 1:
            raise UsageError(f"workers cannot be at work {self.utilization:g} of the time; give a share in (0, 1]")

    def wanted(self, seen: Seen) -> int:
        """The rate of arrivals over the true rate of a worker."""
        processed, busy_s = int(seen.processed.sum()), float(seen.busy_s.sum())
        if processed == 0 or busy_s <= 0:
            return seen.workers
        return workers_for(seen.arrived / seen.collected_s * busy_s / processed, self.utilization)


@dataclass(frozen=True, slots=True)
class LagThreshold:
    """Wants a worker for every so many rows that wait.

    As an autoscaler of pods has it, nothing changes while the rows that wait for a worker are about the threshold.

    Attributes:
        rows: That may wait for a worker, above 0.
        tolerance: What is about the threshold, as a part of it.

    Source: the Kafka scaler of KEDA, lagThreshold; the Horizontal Pod Autoscaler, whose tolerance is 0.1.
    """

    rows: float
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.rows < math.inf:
            raise UsageError(f"a lag of {self.rows:g} rows for a worker is none; give a number above 0")
        if not 0 <= self.tolerance < math.inf:
            raise UsageError(f"a tolerance of {self.tolerance:g} is none; give a part from 0 up")

    def wanted(self, seen: Seen) -> int:
        """All rows that wait over the threshold."""
        wanted = seen.waiting / self.rows
        if abs(wanted / seen.workers - 1) <= self.tolerance:
            return seen.workers
        return workers_for(wanted, 1.0)
