"""Autoscalers of engines: Flink's operator, KEDA, and Spark's dynamic allocation.

Source: apache/flink-kubernetes-operator, flink-autoscaler at commit 3adc6b3: AutoScalerOptions, JobVertexScaler,
ScalingMetricEvaluator, ScalingMetricCollector and AutoScalerUtils.
"""

import math
from collections import deque
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.policies.scaler import ALMOST, Epoch, Job, together
from adapt.core.elastic.policies.thresholds import workers_for
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Seen

SAMPLES = 60
"""Samples of a metric window."""


@dataclass(frozen=True, slots=True)
class AutoscalerOptions:
    """Options of the autoscaler, with its defaults."""

    target: float = 0.7  # utilization.target
    boundary: float = 0.3  # target.utilization.boundary, around the target
    most_down: float = 0.6  # scale-down.max-factor
    most_up: float = 100_000.0  # scale-up.max-factor
    window_s: float = 900.0  # metrics.window
    stabilization_s: float = 300.0  # stabilization.interval
    scale_down_s: float = 3600.0  # scale-down.interval
    catch_up_s: float = 1800.0  # catch-up.duration
    restart_s: float = 300.0  # restart.time
    backlog_s: float = 300.0  # backlog-processing.lag-threshold

    def sped_up(self, factor: float) -> "AutoscalerOptions":
        """All times multiplied by a factor."""
        times = {one.name: getattr(self, one.name) * factor for one in fields(self) if one.name.endswith("_s")}
        return replace(self, **times)

    @property
    def first_s(self) -> float:
        """When the autoscaler decides first."""
        return self.stabilization_s + self.window_s


@dataclass(frozen=True, slots=True)
class Metrics:
    """Evaluated metrics of a window."""

    rate: float  # TARGET_DATA_RATE, rows that arrive per second
    true_rate: float  # TRUE_PROCESSING_RATE of all workers, by the busiest one; infinite if nothing was processed
    lag: float  # rows waiting
    input_rate: float  # rows processed per second

    @classmethod
    def of(cls, window: Seen, busy: float) -> "Metrics":
        """From a window and the mean utilization of its busiest workers."""
        processed = int(window.processed.sum()) / window.collected_s
        true_rate = processed / busy if processed > 0 and busy > 0 else math.inf
        return cls(window.arrived / window.collected_s, true_rate, float(window.waiting), processed)


def capacity(options: AutoscalerOptions, metrics: Metrics, utilization: float, with_restart: bool) -> float:
    """Processing capacity needed for the rate, lag and restart at a utilization.

    Source: AutoScalerUtils.getTargetProcessingCapacity, without rounding to whole rows.
    """
    if utilization <= 0:
        return math.inf
    restart_s = options.restart_s if with_restart else 0.0
    behind = metrics.lag + metrics.rate * restart_s
    return behind / options.catch_up_s + metrics.rate / min(1.0, utilization)


def is_outside(options: AutoscalerOptions, metrics: Metrics) -> bool:
    """Whether the true processing rate is outside the utilization bounds.

    Source: ScalingMetricEvaluator.computeProcessingRateThresholds.
    """
    behind = metrics.input_rate > 0 and metrics.lag / metrics.input_rate > options.backlog_s
    upper, lower = (1.0, 0.0) if behind else (options.target + options.boundary, options.target - options.boundary)
    least, most = capacity(options, metrics, upper, False), capacity(options, metrics, lower, True)
    return metrics.true_rate < least or metrics.true_rate > most


def parallelism(options: AutoscalerOptions, metrics: Metrics, present: int, pool: int, groups: int) -> int:
    """The recommended parallelism, evenly spread over key groups.

    Source: JobVertexScaler.computeScaleTargetParallelism and scale, in mode EVENLY_SPREAD.
    """
    factor = capacity(options, metrics, options.target, True) / metrics.true_rate
    factor = min(max(factor, 1 - options.most_down), 1 + options.most_up)
    most = min(pool, groups)
    wanted = min(max(1, math.ceil(factor * present * (1 - 1e-12))), most)
    if wanted == present:
        return present
    for aligned in range(wanted, (most if wanted > present else min(present, most)) + 1):
        if groups % aligned == 0:
            return aligned
    fewer = wanted
    while fewer > 0 and groups // fewer <= groups // wanted:
        fewer -= 1
    fewer = max(1, fewer + 1 if fewer > 0 and groups % fewer else fewer)
    keeps_direction = fewer > present if wanted > present else fewer < present
    return fewer if keeps_direction else present


@dataclass(slots=True)
class FlinkAutoscaler:
    """The autoscaler's course: stabilize, fill a window, decide, and delay a scale-in.

    A start, at first or after a rescale, clears all metrics. A rescale happens only while the true processing rate is
    outside its bounds; a scale-in only if fewer workers were recommended throughout the scale-down interval, and then
    to the largest of these recommendations.
    """

    options: AutoscalerOptions
    pool: int  # the maximum number of workers
    groups: int  # key groups: the partitions of the stage
    _job: Job = field(default_factory=Job)
    _started_s: float = 0.0
    _sample: Epoch = field(init=False)
    _window: deque[Seen] = field(default_factory=deque)
    _fewer_since_s: float | None = None
    _fewer: deque[tuple[float, int, bool]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._sample = Epoch(self.options.window_s / SAMPLES)

    def wanted(self, seen: Seen) -> int:
        """The number to rescale to now, else the current one."""
        if self._job.started(seen):
            self._started_s = seen.at_s - seen.collected_s
            self._sample.clear()
            self._window.clear()
            self._forget()
        now, present, options = seen.at_s, seen.workers, self.options
        if now - self._started_s <= options.stabilization_s / ALMOST:
            return present
        sample = self._sample.add(seen)
        if sample is None:
            return present
        self._window.append(sample)
        if now - self._started_s < options.first_s * ALMOST:
            return present
        while self._window[0].at_s <= now - options.window_s * ALMOST:
            self._window.popleft()
        window = list(self._window)
        busy = sum(float(one.busy_s.max()) / one.collected_s for one in window) / len(window)
        metrics = Metrics.of(together(window), busy)
        wanted = parallelism(options, metrics, present, self.pool, self.groups)
        outside = is_outside(options, metrics)
        if wanted < present:
            wanted, outside = self._delayed(now, wanted, outside, present)
        else:
            self._forget()
        return wanted if outside else present

    def _delayed(self, now: float, wanted: int, outside: bool, present: int) -> tuple[int, bool]:
        """The largest recommendation of the scale-down interval, once that has passed."""
        interval_s = self.options.scale_down_s
        if self._fewer_since_s is None:
            self._fewer_since_s = now
        while self._fewer and self._fewer[-1][1] <= wanted:
            self._fewer.pop()
        self._fewer.append((now, wanted, outside))
        if now - self._fewer_since_s < interval_s * ALMOST:
            return present, False
        while now - self._fewer[0][0] > interval_s:
            self._fewer.popleft()
        _, most, was_outside = self._fewer[0]
        return most, was_outside

    def _forget(self) -> None:
        """No scale-in is delayed."""
        self._fewer_since_s = None
        self._fewer.clear()


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
