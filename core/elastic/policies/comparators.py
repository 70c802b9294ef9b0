"""Scaling policies of other systems: fixed, DS2, lag threshold."""

import math
from dataclasses import dataclass

from adapt.core.elastic.policies.thresholds import workers_for
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Seen


@dataclass(frozen=True, slots=True)
class FixedWorkers:
    """Never changes the number of workers."""

    def wanted(self, seen: Seen) -> int:
        """The current number of workers."""
        return seen.workers


@dataclass(frozen=True, slots=True)
class TrueRates:
    """DS2: arrival rate over true processing rate, in one rescale.

    The true rate of a worker is what it processes per second of busy time, so waiting for input or for backpressure
    does not count. Where nothing was processed, the number of workers stays.

    Attributes:
        utilization: Target utilization of a worker, in (0, 1]; DS2 itself uses 1.

    Source: Kalavri et al., "Three steps is all you need", OSDI 2018.
    """

    utilization: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.utilization <= 1:
            raise UsageError(f"the target utilization must be above 0 and at most 1 (got {self.utilization:g})")

    def wanted(self, seen: Seen) -> int:
        """Arrival rate over a worker's true rate at the target utilization."""
        processed, busy_s = seen.processed.sum(), seen.busy_s.sum()
        if processed == 0 or busy_s <= 0:
            return seen.workers
        return workers_for(float(seen.arrived / seen.collected_s * busy_s / processed), self.utilization)


@dataclass(frozen=True, slots=True)
class LagThreshold:
    """Lag threshold: one worker for every `rows` waiting rows.

    As in the Horizontal Pod Autoscaler, nothing changes while the lag of a worker is within the tolerance.

    Attributes:
        rows: Lag threshold of a worker, above 0.
        tolerance: Relative deviation from the threshold that is ignored.

    Source: the Kafka scaler of KEDA, lagThreshold; the Horizontal Pod Autoscaler, whose tolerance is 0.1.
    """

    rows: float
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.rows < math.inf:
            raise UsageError(f"the lag threshold must be above 0 rows (got {self.rows:g})")
        if not 0 <= self.tolerance < math.inf:
            raise UsageError(f"the tolerance of the lag must be at least 0 (got {self.tolerance:g})")

    def wanted(self, seen: Seen) -> int:
        """The waiting rows over the threshold."""
        wanted = seen.waiting / self.rows
        if abs(wanted / seen.workers - 1) <= self.tolerance:
            return seen.workers
        return workers_for(wanted, 1.0)
