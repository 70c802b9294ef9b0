"""Sums of observations over a decision interval."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adapt.core.stage.control.workers import Seen

ALMOST = 1 - 1e-9
"""Rounding of times: an interval is over when this share of it has passed."""


def together(parts: Sequence[Seen]) -> Seen:
    """One observation for successive ones of the same workers."""
    first, *more = parts
    if not more:
        return first
    return replace(
        parts[-1],
        collected_s=sum(part.collected_s for part in parts),
        busy_s=np.sum([part.busy_s for part in parts], axis=0),
        processed=np.sum([part.processed for part in parts], axis=0),
        loads=np.sum([part.loads for part in parts], axis=0),
        arrived=sum(part.arrived for part in parts),
    )


@dataclass(slots=True)
class Job:
    """Detects starts of a job, at first or after a rescale.

    Autoscalers see nothing while partitions move, so that a gap between observations, or another number of workers,
    means that they did.
    """

    _last: Seen | None = None

    def started(self, seen: Seen) -> bool:
        """Whether this is the first observation since a start."""
        last, self._last = self._last, seen
        if last is None or last.workers != seen.workers:
            return True
        return seen.at_s - last.at_s > 1.5 * seen.collected_s


@dataclass(slots=True)
class Epoch:
    """Collects observations until an interval has passed."""

    interval_s: float  # length of the interval
    _so_far: Seen | None = None

    def clear(self) -> None:
        """Begin anew."""
        self._so_far = None

    def add(self, seen: Seen) -> Seen | None:
        """The observation of the whole interval if it is over, else None."""
        self._so_far = seen if self._so_far is None else together([self._so_far, seen])
        if self._so_far.collected_s < self.interval_s * ALMOST:
            return None
        done, self._so_far = self._so_far, None
        return done


@dataclass(slots=True)
class JobIntervals:
    """Decision intervals of a job that warms up after each start."""

    interval_s: float  # length of an interval
    warm_up: int  # intervals after a start in which the job is not warm
    is_warm: bool = False  # whether the job was warm in the last interval
    _job: Job = field(default_factory=Job)
    _epoch: Epoch = field(init=False)
    _passed: int = 0

    def __post_init__(self) -> None:
        self._epoch = Epoch(self.interval_s)

    def add(self, seen: Seen) -> Seen | None:
        """The observation of the whole interval if it is over, else None."""
        if self._job.started(seen):
            self._epoch.clear()
            self._passed = 0
        interval = self._epoch.add(seen)
        if interval is not None:
            self.is_warm = self._passed >= self.warm_up
            self._passed += 1
        return interval
