"""Spark's dynamic allocation of executors, by backlog."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.policies.epochs import ALMOST
from adapt.core.stage.control.workers import Seen

BACKLOG_S, IDLE_S = 1.0, 60.0
"""schedulerBacklogTimeout, which sustainedSchedulerBacklogTimeout equals, and executorIdleTimeout."""


@dataclass(slots=True)
class DynamicAllocation:
    """Adds 1, 2, 4 workers while tasks are pending; removes idle ones.

    The tasks of a batch are the partitions, so that they are never fewer than the workers. Tasks are pending while more
    rows wait than arrive in a period. A worker that processes nothing is idle.

    Source: apache/spark, org.apache.spark.ExecutorAllocationManager, spark.dynamicAllocation.*.
    """

    pool: int  # the maximum number of workers
    backlog_s: float = BACKLOG_S  # how long tasks must be pending before more workers are added
    idle_s: float = IDLE_S  # how long a worker must be idle before it is removed
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
