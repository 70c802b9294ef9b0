"""Scaling policies of papers: a fixed number, thresholds, and DS2.

Source: ESJ, adaptive workload.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.policies.names import Signal
from adapt.core.elastic.policies.scaler import BUSIEST, JobIntervals, ScaleOn
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.shed_factor import ShedFactor, Thresholds
from adapt.core.stage.control.workers import Seen


@dataclass(frozen=True, slots=True)
class FixedWorkers:
    """Never changes the number of workers."""

    def wanted(self, seen: Seen) -> int:
        """The current number of workers."""
        return seen.workers


def workers_for(load: float, tau: float) -> int:
    """The fewest workers at a utilization up to `tau`; at least 1.

    Args:
        load: In workers at full utilization.
    """
    return max(1, math.ceil(load / tau * (1 - 1e-12)))


def initial_workers(rate_per_s: float, window_s: float, capacity_tuples: float, tau1: float) -> int:
    """M for an expected rate: the fewest workers up to tau1.

    Args:
        rate_per_s: E(rate), at least 0.
        window_s: Retention of a tuple.
        capacity_tuples: W, the capacity of a worker.
        tau1: Target utilization.

    Source: ESJ, initial deployment: ceil(E(rate) window / (W tau1)).
    """
    if not 0 <= rate_per_s < np.inf:
        raise UsageError(f"the rate must be at least 0 tuples/s (got {rate_per_s:g})")
    return workers_for(rate_per_s * window_s / capacity_tuples, tau1)


def starts_at(thresholds: Thresholds, factor: ShedFactor | None, signal: Signal) -> float:
    """Offered load over capacity at which thresholds scale out; infinite for never.

    Shedding hides the load: workers that are offered rho settle at tau = rho (1 - SF(tau)), so they reach tau3 only
    from rho = tau3 / (1 - SF(tau3)) on. After a sudden rise their utilization swings around tau, once per window, and
    may fall below tau3 before a long scale-out delay is over.

    Args:
        factor: How workers shed; None without shedding.
        signal: The utilization that is compared with the thresholds.
    """
    if signal is Signal.OFFERED or factor is None:
        return thresholds.tau3
    kept = 1 - float(factor.part(np.array([thresholds.tau3]))[0])
    return thresholds.tau3 / kept if kept > 0 else np.inf


@dataclass(frozen=True, slots=True)
class ThresholdScaling:
    """Scales to tau1 once utilization reaches tau3 or falls to tau0."""

    thresholds: Thresholds  # tau0 to tau3
    signal: Signal = Signal.HELD  # the utilization that is compared with them
    # W, the buffer capacity of a worker; None without buffers, where utilization is busy time
    capacity_tuples: int | None = None
    scale_on: ScaleOn = BUSIEST  # whose utilization it is

    def wanted(self, seen: Seen) -> int:
        """The number of workers wanted for one observation.

        The watched utilization is then at tau1, if the imbalance stays.
        """
        tau = self.scale_on.of(self.utilizations(seen))
        if self.thresholds.tau0 < tau < self.thresholds.tau3:
            return seen.workers
        return workers_for(seen.workers * tau, self.thresholds.tau1)

    def utilizations(self, seen: Seen) -> NDArray[np.float64]:
        """The utilization of each worker, shape (workers,)."""
        if self.capacity_tuples is not None:
            rows = seen.held if self.signal is Signal.HELD else seen.offered
            return np.zeros(seen.workers) if rows is None else np.asarray(rows / self.capacity_tuples)
        busy = seen.busy_s / seen.collected_s
        processed = int(seen.processed.sum())
        return busy if self.signal is Signal.HELD or processed == 0 else busy * (seen.arrived / processed)


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
