"""Scaling controller, and what it observes over an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.policies.names import Alignment
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Decision, Seen, Waiting


class Policy(Protocol):
    """Scaling policy: the number of workers for one observation.

    One whose `paces_itself` is true needs no scale-out delay and no cooldown.
    """

    def wanted(self, seen: Seen) -> int:
        """The number of workers wanted, without regard to bounds."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Scale-out delay and cooldown before a rescale."""

    scale_out_delay_s: float = 5.0  # how long more workers must be wanted without a break
    cooldown_s: float = 30.0  # how long fewer workers must be wanted without a break

    def __post_init__(self) -> None:
        for name, time_s in (("scale-out delay", self.scale_out_delay_s), ("cooldown", self.cooldown_s)):
            if not 0 < time_s < np.inf:
                raise UsageError(f"the {name} must be above 0 s (got {time_s:g} s)")


@dataclass(frozen=True, slots=True)
class Rebuild:
    """When the plan is rebuilt without a rescale."""

    every_s: float | None = None  # time between rebuilds; None, no regular rebuilds
    limit: float | None = None  # imbalance above which the plan is rebuilt; None, imbalance is ignored
    min_interval_s: float = 5.0  # least time between rebuilds because of imbalance

    def __post_init__(self) -> None:
        for time_s in (self.every_s, self.min_interval_s):
            if time_s is not None and not 0 < time_s < np.inf:
                raise UsageError(f"the time between rebuilds must be above 0 s (got {time_s:g} s)")
        if self.limit is not None and not 1 <= self.limit < np.inf:
            raise UsageError(f"the imbalance limit of rebuilds must be at least 1 (got {self.limit:g})")

    def due(self, seen: Seen, changed_s: float) -> bool:
        """Whether to rebuild the plan that took effect at `changed_s`."""
        age_s = (seen.at_s - changed_s) * (1 + 1e-9)
        by_the_clock = self.every_s is not None and age_s >= self.every_s
        return by_the_clock or (self.limit is not None and seen.imbalance > self.limit and age_s >= self.min_interval_s)


@dataclass(frozen=True, slots=True)
class ElasticController:
    """Scales within [least, pool] by a policy, and rebuilds plans."""

    policy: Policy  # wants a number of workers
    least: int  # M, the workers at the start and the minimum
    pool: int  # the maximum number of workers
    patience: Patience | None = Patience()  # scale-out delay and cooldown; None for a policy with its own timing
    rebuild: Rebuild = Rebuild()  # when the plan is rebuilt without a rescale
    partitions: int = 0  # number of partitions, for the alignment
    alignment: Alignment = Alignment.ANY  # which numbers of workers are allowed

    def __post_init__(self) -> None:
        check_pool(self.least, self.pool)

    def decide(self, seen: Seen, waiting: Waiting) -> tuple[Decision, Waiting]:
        """Decide what to do now, and what to remember."""
        now, present = seen.at_s, seen.workers
        wanted = self._allowed(self.policy.wanted(seen), present)
        waits = Waiting(waiting.changed_s)
        if self.patience is None:
            if wanted != present:
                return Decision(wanted), waits
        elif wanted > present:
            since_s = now if waiting.more_since_s is None else waiting.more_since_s
            if _passed(since_s, now, self.patience.scale_out_delay_s):
                return Decision(wanted), waits
            waits = replace(waits, more_since_s=since_s)
        elif wanted < present:
            since_s = now if waiting.fewer_since_s is None else waiting.fewer_since_s
            fewer_to = wanted if waiting.fewer_since_s is None else max(wanted, waiting.fewer_to)
            if _passed(since_s, now, self.patience.cooldown_s):
                return Decision(fewer_to), waits
            waits = replace(waits, fewer_since_s=since_s, fewer_to=fewer_to)
        if self.rebuild.due(seen, waiting.changed_s):
            return Decision(present, rebuild=True), waits
        return Decision(present), waits

    def _allowed(self, wanted: int, present: int) -> int:
        """The nearest allowed number of workers on the same side of the present one."""
        aligned = aligned_to(self.partitions, wanted, self.pool) if self.alignment is Alignment.FACTORS else wanted
        bounded = min(max(aligned, self.least), self.pool)
        return max(bounded, present) if wanted > present else min(bounded, present)


def aligned_to(partitions: int, wanted: int, pool: int) -> int:
    """The next divisor of the partitions, else the greatest in the pool.

    Source: the Kafka scaler of KEDA, ensureEvenDistributionOfPartitions; the autoscaler of Flink, by key groups.
    """
    divisors = [number for number in range(1, min(partitions, pool) + 1) if partitions % number == 0]
    return next((number for number in divisors if number >= wanted), divisors[-1])


def check_pool(least: int, pool: int) -> None:
    """Check the workers at the start against the pool."""
    if least < 1:
        raise UsageError(f"a stage needs at least 1 worker (got {least})")
    if pool < least:
        raise UsageError(
            f"the pool of {pool} workers is smaller than the {least} workers at the start; give a larger pool"
            " or fewer workers"
        )


def _passed(since_s: float, now_s: float, delay_s: float) -> bool:
    return (now_s - since_s) * (1 + 1e-9) >= delay_s


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


@dataclass(frozen=True, slots=True)
class ScaleOn:
    """Whose utilization the thresholds are compared with.

    Source: ESJ defines tau for a worker, which is `above` = 0, the busiest one; the mean hides it under skew.
    """

    # share of the workers, in (0, 1], that must be at or above a threshold; 0 for one worker. None for the mean of
    # all
    above: float | None = 0.0

    def __post_init__(self) -> None:
        if self.above is not None and not 0 <= self.above <= 1:
            raise UsageError(f"scale-on takes busiest, mean, or a share of workers up to 100% (got {self})")

    @classmethod
    def parse(cls, text: str) -> "ScaleOn":
        """From busiest, mean, or a share such as 25%."""
        named = {"busiest": cls(0.0), "mean": cls(None)}
        if text in named:
            return named[text]
        try:
            if not text.endswith("%"):
                raise ValueError(text)
            return cls(float(text[:-1]) / 100)
        except ValueError:
            raise UsageError(
                f"scale-on takes busiest, mean, or a share of workers such as 25% (got {text!r})"
            ) from None

    def __str__(self) -> str:
        if self.above is None:
            return "mean"
        return f"{100 * self.above:g}%" if self.above else "busiest"

    def of(self, utilizations: NDArray[np.float64]) -> float:
        """The utilization to compare, from that of each worker; shape (workers,)."""
        if self.above is None:
            return float(utilizations.mean())
        rank = max(1, math.ceil(self.above * len(utilizations) * (1 - 1e-12)))
        return float(np.sort(utilizations)[-rank])


BUSIEST = ScaleOn()
"""The default: the busiest worker."""
