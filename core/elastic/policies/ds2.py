"""DS2: arrival rate over true processing rate, in one rescale."""

from dataclasses import dataclass, field

from adapt.core.elastic.policies.epochs import JobIntervals
from adapt.core.elastic.policies.thresholds import workers_for
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Seen


@dataclass(frozen=True, slots=True)
class TrueRates:
    """DS2's model: arrival rate over true processing rate.

    The true rate of a worker is what it processes per second of busy time, so waiting for input or for backpressure
    does not count. Where nothing was processed, the number of workers stays.

    Source: Kalavri et al., "Three steps is all you need", OSDI 2018.
    """

    utilization: float = 0.8  # target utilization of a worker, in (0, 1]; DS2 itself uses 1

    def __post_init__(self) -> None:
        if not 0 < self.utilization <= 1:
            raise UsageError(f"the target utilization must be above 0 and at most 1 (got {self.utilization:g})")

    def wanted(self, seen: Seen) -> int:
        """Arrival rate over a worker's true rate at the target utilization."""
        processed, busy_s = seen.processed.sum(), seen.busy_s.sum()
        if processed == 0 or busy_s <= 0:
            return seen.workers
        return workers_for(float(seen.arrived / seen.collected_s * busy_s / processed), self.utilization)


POLICY_INTERVAL_S, WARM_UP = 10.0, 2
"""Decision interval, and intervals ignored after a start: `policy_interval` and `warm_up_time` of DS2's ds2.toml."""


@dataclass(slots=True)
class ScalingManager:
    """DS2's scaling manager: decides once an interval, after a warm-up.

    It never scales in by one worker. The activation time is one interval, its default.

    Source: strymon-system/ds2, controller/config/ds2.toml and controller/src/bin/manager.rs.
    """

    model: TrueRates  # wants a number of workers for the rates of an interval
    interval_s: float = POLICY_INTERVAL_S  # decision interval
    warm_up: int = WARM_UP  # intervals ignored after a start
    _intervals: JobIntervals = field(init=False)

    def __post_init__(self) -> None:
        self._intervals = JobIntervals(self.interval_s, self.warm_up)

    def wanted(self, seen: Seen) -> int:
        """The model's number after an interval, else the current one."""
        interval = self._intervals.add(seen)
        if interval is None or not self._intervals.is_warm:
            return seen.workers
        wanted = self.model.wanted(interval)
        return seen.workers if wanted == seen.workers - 1 else wanted
