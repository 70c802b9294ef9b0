"""Scaling by thresholds: more workers while they are too full, fewer while they are too empty.

Source: ESJ, adaptive workload.
"""

import math
from dataclasses import dataclass

import numpy as np

from adapt.core.elastic.policies.names import Signal
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.shed_factor import ShedFactor, Thresholds
from adapt.core.stage.control.workers import Seen


def workers_for(load: float, tau: float) -> int:
    """The fewest workers that a load, in full workers, fills to `tau` at most; at least 1."""
    return max(1, math.ceil(load / tau * (1 - 1e-12)))


def initial_workers(rate_per_s: float, window_s: float, capacity_tuples: float, tau1: float) -> int:
    """M for an expected rate: the least that are expected to be filled to tau1 at most; at least 1.

    Args:
        rate_per_s: E(rate), from 0 up.
        window_s: How long a tuple is held.
        capacity_tuples: W, what a worker can hold.
        tau1: Where workers are to be.

    Raises:
        UsageError: there is no such rate.

    Source: ESJ, initial deployment: ceil(E(rate) window / (W tau1)).
    """
    if not 0 <= rate_per_s < np.inf:
        raise UsageError(f"a stream of {rate_per_s:g} tuples/s is none; give a rate from 0 up")
    return workers_for(rate_per_s * window_s / capacity_tuples, tau1)


def starts_at(thresholds: Thresholds, factor: ShedFactor | None, signal: Signal) -> float:
    """The offered load, over what workers can hold, from which on more of them are asked for; infinite, never.

    Shedding hides the load: workers that are offered rho settle at tau = rho (1 - SF(tau)), so that they hold tau3 only
    from rho = tau3 / (1 - SF(tau3)) on. After a sudden rise what they hold swings about tau, once in a window, and may
    fall below tau3 before a long hold is over.

    Args:
        factor: What they shed; None, nothing.
        signal: What is compared with the thresholds.
    """
    if signal is Signal.OFFERED or factor is None:
        return thresholds.tau3
    kept = 1 - float(factor.part(np.array([thresholds.tau3]))[0])
    return thresholds.tau3 / kept if kept > 0 else np.inf


@dataclass(frozen=True, slots=True)
class ThresholdScaling:
    """Wants so many workers that they are filled to tau1, once they are as full as tau3 or as empty as tau0.

    Attributes:
        thresholds: tau0 to tau3.
        signal: What is compared with them.
        capacity_tuples: W, what a worker can hold; None where they hold nothing, and are full when they always work.
    """

    thresholds: Thresholds
    signal: Signal = Signal.HELD
    capacity_tuples: int | None = None

    def wanted(self, seen: Seen) -> int:
        """How many workers there should be, by what is seen alone."""
        load = self.load(seen)
        tau = load / seen.workers
        if self.thresholds.tau0 < tau < self.thresholds.tau3:
            return seen.workers
        return workers_for(load, self.thresholds.tau1)

    def load(self, seen: Seen) -> float:
        """What fills the workers, in full workers: m tau."""
        if self.capacity_tuples is not None:
            return (seen.held if self.signal is Signal.HELD else seen.offered) / self.capacity_tuples
        busy = float(seen.busy_s.sum()) / seen.collected_s
        processed = int(seen.processed.sum())
        if self.signal is Signal.HELD or processed == 0:
            return busy
        return busy * seen.arrived / processed
