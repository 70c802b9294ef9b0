"""KEDA's Kafka scaler on the Horizontal Pod Autoscaler."""

import math
from collections import deque
from dataclasses import dataclass, field

from adapt.core.elastic.policies.epochs import ALMOST
from adapt.core.elastic.policies.thresholds import workers_for
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Seen


@dataclass(frozen=True, slots=True)
class LagThreshold:
    """Lag threshold: one worker for every `rows` waiting rows.

    As in the Horizontal Pod Autoscaler, nothing changes while the lag of a worker is within the tolerance.

    Source: kedacore/keda, Kafka scaler, lagThreshold and allowIdleConsumers (false by default); Kubernetes,
    GetExternalPerPodMetricReplicas, whose tolerance is 0.1.
    """

    rows: float  # lag threshold of a worker, above 0
    tolerance: float = 0.1  # relative deviation from the threshold that is ignored
    partitions: int | None = None  # partitions of the stage, which bound the workers; None, no bound

    def __post_init__(self) -> None:
        if not 0 < self.rows < math.inf:
            raise UsageError(f"the lag threshold must be above 0 rows (got {self.rows:g})")
        if not 0 <= self.tolerance < math.inf:
            raise UsageError(f"the tolerance of the lag must be at least 0 (got {self.tolerance:g})")

    def wanted(self, seen: Seen) -> int:
        """The waiting rows over the threshold."""
        wanted = seen.waiting / self.rows
        if self.partitions is not None:
            wanted = min(wanted, self.partitions)
        if abs(wanted / seen.workers - 1) <= self.tolerance:
            return seen.workers
        return workers_for(wanted, 1.0)


SYNC_S, SCALE_DOWN_WINDOW_S = 15.0, 300.0
"""The autoscaler's sync period and its stabilization window for scaling in."""

LEAST_GROWTH, GROWTH = 4, 2
"""Workers added in a sync period: up to 4, or as many as there are."""


@dataclass(slots=True)
class PodAutoscaler:
    """The Horizontal Pod Autoscaler around a recommendation, with its default behavior.

    It scales in to the largest recommendation of the window, and out at once, to at most twice the workers or 4 more.

    Source: Kubernetes, pkg/apis/autoscaling/v2/defaults.go and stabilizeRecommendationWithBehaviors.
    """

    recommendation: LagThreshold  # wants a number of workers for the current metrics
    sync_s: float = SYNC_S  # time between decisions
    window_s: float = SCALE_DOWN_WINDOW_S  # stabilization window for scaling in
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def wanted(self, seen: Seen) -> int:
        """The stabilized recommendation once a sync period, else the current number."""
        now, present = seen.at_s, seen.workers
        if self._recent and now - self._recent[-1][0] < self.sync_s * ALMOST:
            return present
        if not self._recent:
            self._recent.append((now, present))
        while self._recent and now - self._recent[0][0] >= self.window_s * ALMOST:
            self._recent.popleft()
        raw = self.recommendation.wanted(seen)
        stable = raw if raw >= present else max([raw, *(number for _, number in self._recent)])
        self._recent.append((now, raw))
        return min(stable, max(GROWTH * present, present + LEAST_GROWTH))
