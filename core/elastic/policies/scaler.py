"""The scaling controller: bounds, alignment, scale-out delay and cooldown around a policy."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from adapt.core.elastic.policies.names import Alignment
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Decision, Seen, Waiting


class Policy(Protocol):
    """Scaling policy: the number of workers for one observation.

    One whose `paces_itself` is true needs no scale-out delay and no cooldown.
    """

    def wanted(self, seen: Seen) -> int:
        """The number of workers wanted, without regard to bounds."""


@runtime_checkable
class PlacingPolicy(Policy, Protocol):
    """Policy that also decides when to place anew on the same workers."""

    def decided(self, seen: Seen) -> Decision:
        """What to do, without regard to bounds."""


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
        whole = self.policy.decided(seen) if isinstance(self.policy, PlacingPolicy) else None
        wanted = self._allowed(self.policy.wanted(seen) if whole is None else whole.workers, present)
        waits = Waiting(waiting.changed_s)
        if whole is not None and whole.rebuild:
            return Decision(wanted, rebuild=True), waits
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
