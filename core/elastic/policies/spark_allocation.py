"""Spark's dynamic allocation of executors: by backlog, or by batch times."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.policies.epochs import ALMOST, Epoch, Job
from adapt.core.stage.control.workers import Seen

BACKLOG_S, IDLE_S = 1.0, 60.0
"""schedulerBacklogTimeout, which sustainedSchedulerBacklogTimeout equals, and executorIdleTimeout."""


@dataclass(slots=True)
class DynamicAllocation:
    """Adds 1, 2, 4 workers while tasks are pending; removes idle ones.

    The tasks of a batch are the partitions, so that they are never fewer than the workers. Tasks are pending while more
    rows wait than arrive in a period. A worker that processes nothing is idle.

    Attributes:
        pool: The maximum number of workers.
        backlog_s: How long tasks must be pending before more workers are added.
        idle_s: How long a worker must be idle before it is removed.

    Source: apache/spark, org.apache.spark.ExecutorAllocationManager, spark.dynamicAllocation.*.
    """

    pool: int
    backlog_s: float = BACKLOG_S
    idle_s: float = IDLE_S
    _add_at_s: float | None = None
    _adds: int = 1
    _busy_at_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def wanted(self, seen: Seen) -> int:
        """The current number with those added, without those idle."""
        now, present = seen.at_s, seen.workers
        added = self._added(now, present, seen.waiting > seen.arrived)
        last = np.full(present, now)
        kept = min(present, len(self._busy_at_s))
        last[:kept] = np.where(seen.processed[:kept] > 0, now, self._busy_at_s[:kept])
        idle = now - last >= self.idle_s * ALMOST
        self._busy_at_s = np.where(idle, now, last)
        return max(1, present + added - int(idle.sum()))

    def _added(self, now: float, present: int, is_pending: bool) -> int:
        """The workers to add now."""
        if not is_pending:
            self._add_at_s, self._adds = None, 1
            return 0
        if self._add_at_s is None:
            self._add_at_s = now + self.backlog_s
        if now < self._add_at_s * ALMOST:
            return 0
        self._add_at_s = now + self.backlog_s
        added = min(self._adds, self.pool - present)
        self._adds = 2 * self._adds if added == self._adds else 1
        return added


INTERVAL_S, UP, DOWN = 60.0, 0.9, 0.3
"""scalingInterval, scalingUpRatio and scalingDownRatio."""


@dataclass(slots=True)
class BatchRatio:
    """Adds or removes executors by batch time over batch interval.

    The batch time is that of the busiest worker for the rows that arrive in the interval.

    Attributes:
        interval_s: Time between decisions.

    Source: apache/spark, org.apache.spark.streaming.scheduler.ExecutorAllocationManager,
    spark.streaming.dynamicAllocation.*; it is part of DStreams.
    """

    interval_s: float = INTERVAL_S
    _job: Job = field(default_factory=Job)
    _epoch: Epoch = field(init=False)

    def __post_init__(self) -> None:
        self._epoch = Epoch(self.interval_s)

    def wanted(self, seen: Seen) -> int:
        """More workers from a ratio of 0.9, one less to 0.3."""
        if self._job.started(seen):
            self._epoch.clear()
        interval = self._epoch.add(seen)
        if interval is None:
            return seen.workers
        processed = int(interval.processed.sum())
        ahead = max(1.0, interval.arrived / processed) if processed else 1.0
        ratio = float(interval.busy_s.max()) / interval.collected_s * ahead
        if ratio >= UP * ALMOST:
            return seen.workers + max(1, math.floor(ratio + 0.5))
        return seen.workers - 1 if ratio * ALMOST <= DOWN else seen.workers
