"""CPU time that disturbances leave to the workers of a stage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.conditions.disturbances import ExternalLoad, SlowDown
from adapt.core.stage.conditions.faults import Crash


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """Cumulative CPU seconds over time, piecewise linear."""

    times_s: NDArray[np.float64]  # breakpoints from 0, ascending
    cpu_s: NDArray[np.float64]  # CPU seconds until each breakpoint
    rate: float  # CPU seconds per second after the last breakpoint

    @classmethod
    def from_disturbances(cls, workers: int, disturbances: Sequence[ExternalLoad | SlowDown | Crash]) -> "Capacity":
        """Total CPU of all workers under non-overlapping disturbances."""
        changes: dict[float, float] = {0.0: float(workers)}
        for one in disturbances:
            start_s, end_s, kept = _kept(one)
            changes[start_s] = changes.get(start_s, 0.0) - (1 - kept)
            if end_s < np.inf:
                changes[end_s] = changes.get(end_s, 0.0) + (1 - kept)
        times_s = np.array(sorted(changes))
        rates = np.maximum(0.0, np.cumsum([changes[time] for time in times_s.tolist()]))
        cpu_s = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(times_s))])
        return cls(times_s, cpu_s, float(rates[-1]))

    @classmethod
    def of_worker(cls, worker: int, disturbances: Sequence[ExternalLoad | SlowDown | Crash]) -> "Capacity":
        """CPU of one worker."""
        return cls.from_disturbances(1, [one for one in disturbances if one.worker == worker])

    def by(self, time_s: float) -> float:
        """CPU seconds until a time."""
        return float(self.by_each(np.array([time_s]))[0])

    def by_each(self, times_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """CPU seconds until each time, of the same shape."""
        over = np.maximum(0.0, times_s - self.times_s[-1])
        return np.asarray(np.interp(times_s, self.times_s, self.cpu_s) + over * self.rate)

    def until(self, cpu_s: float) -> float:
        """The time when `cpu_s` CPU seconds are reached; infinite if never."""
        over = cpu_s - float(self.cpu_s[-1])
        if over > 0:
            return float(self.times_s[-1]) + over / self.rate if self.rate > 0 else np.inf
        at = int(np.searchsorted(self.cpu_s, cpu_s))
        if at == 0:
            return 0.0
        share = (cpu_s - self.cpu_s[at - 1]) / (self.cpu_s[at] - self.cpu_s[at - 1])
        return float(self.times_s[at - 1] + share * (self.times_s[at] - self.times_s[at - 1]))


def _kept(one: ExternalLoad | SlowDown | Crash) -> tuple[float, float, float]:
    """Start, end and the share of CPU that the worker keeps."""
    match one:
        case Crash():
            return one.at_s, one.back_s, 0.0
        case SlowDown():
            return one.start_s, one.end_s, one.speed
        case _:
            return one.start_s, one.end_s, one.kept
