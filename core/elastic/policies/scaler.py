"""From what a policy wants to what is done: within bounds, in whole shares, and only what has been wanted for long."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from adapt.core.elastic.policies.names import Alignment
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Decision, Seen, Waiting


class Policy(Protocol):
    """Says how many workers there should be, from one observation, remembering nothing."""

    def wanted(self, seen: Seen) -> int:
        """How many; bounds are none of its business."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long something must be wanted without a break before it is done.

    Attributes:
        up_s: More workers.
        down_s: Fewer.

    Raises:
        UsageError: one is not above 0.
    """

    up_s: float = 5.0
    down_s: float = 30.0

    def __post_init__(self) -> None:
        for name, hold_s in (("up", self.up_s), ("down", self.down_s)):
            if not 0 < hold_s < np.inf:
                raise UsageError(f"a hold of {hold_s:g} s before scaling {name} is none; give a time above 0")


@dataclass(frozen=True, slots=True)
class Rebuild:
    """When the plan is built anew though the workers stay as many.

    Attributes:
        every_s: So long after the last; None, not by the clock.
        limit: When the heaviest load is above this multiple of the mean; None, whatever it is.
        rest_s: Not sooner than this after the last, whatever the imbalance.

    Raises:
        UsageError: a time is not above 0, or a limit is below 1.
    """

    every_s: float | None = None
    limit: float | None = None
    rest_s: float = 5.0

    def __post_init__(self) -> None:
        for name, time_s in (("every", self.every_s), ("at most every", self.rest_s)):
            if time_s is not None and not 0 < time_s < np.inf:
                raise UsageError(f"a plan cannot be built anew {name} {time_s:g} s; give a time above 0")
        if self.limit is not None and not 1 <= self.limit < np.inf:
            raise UsageError(f"no load is below {self.limit:g} of their mean; give a limit of imbalance from 1 up")

    def due(self, seen: Seen, changed_s: float) -> bool:
        """Whether the plan that was put in force at `changed_s` is to be replaced."""
        age_s = (seen.at_s - changed_s) * (1 + 1e-9)
        by_the_clock = self.every_s is not None and age_s >= self.every_s
        return by_the_clock or (self.limit is not None and seen.imbalance > self.limit and age_s >= self.rest_s)


@dataclass(frozen=True, slots=True)
class ElasticController:
    """Scales within [least, pool], and builds the plan anew where that is asked for.

    Attributes:
        policy: What is wanted.
        least: M.
        pool: All workers there are.
        patience: For how long it must be wanted.
        rebuild: When the plan is built anew with as many workers.
        partitions: What is dealt to workers.
        alignment: Which numbers of workers there may be.

    Raises:
        UsageError: the pool is smaller than M, or M is below 1.
    """

    policy: Policy
    least: int
    pool: int
    patience: Patience = Patience()
    rebuild: Rebuild = Rebuild()
    partitions: int = 0
    alignment: Alignment = Alignment.ANY

    def __post_init__(self) -> None:
        check_pool(self.least, self.pool)

    def decide(self, seen: Seen, waiting: Waiting) -> tuple[Decision, Waiting]:
        """What is to be done, and what is remembered for the next period if that is nothing."""
        now, present = seen.at_s, seen.workers
        wanted = self._allowed(self.policy.wanted(seen), present)
        waits = Waiting(waiting.changed_s)
        if wanted > present:
            since_s = now if waiting.more_since_s is None else waiting.more_since_s
            if _passed(since_s, now, self.patience.up_s):
                return Decision(wanted), waits
            waits = replace(waits, more_since_s=since_s)
        elif wanted < present:
            since_s = now if waiting.fewer_since_s is None else waiting.fewer_since_s
            fewer_to = wanted if waiting.fewer_since_s is None else max(wanted, waiting.fewer_to)
            if _passed(since_s, now, self.patience.down_s):
                return Decision(fewer_to), waits
            waits = replace(waits, fewer_since_s=since_s, fewer_to=fewer_to)
        if self.rebuild.due(seen, waiting.changed_s):
            return Decision(present, rebuild=True), waits
        return Decision(present), waits

    def _allowed(self, wanted: int, present: int) -> int:
        """The nearest number that there may be, not on the other side of the present one."""
        aligned = aligned_to(self.partitions, wanted, self.pool) if self.alignment is Alignment.FACTORS else wanted
        bounded = min(max(aligned, self.least), self.pool)
        return max(bounded, present) if wanted > present else min(bounded, present)


def aligned_to(partitions: int, wanted: int, pool: int) -> int:
    """The least divisor of the partitions from `wanted` up, if the pool has so many; else the greatest that it has.

    Source: the Kafka scaler of KEDA, ensureEvenDistributionOfPartitions; the autoscaler of Flink, by key groups.
    """
    divisors = [number for number in range(1, min(partitions, pool) + 1) if partitions % number == 0]
    return next((number for number in divisors if number >= wanted), divisors[-1])


def check_pool(least: int, pool: int) -> None:
    """Whether there can be so many workers.

    Raises:
        UsageError: the pool is smaller than M, or M is below 1.
    """
    if least < 1:
        raise UsageError(f"a stage of {least} workers does nothing; give it 1 or more")
    if pool < least:
        raise UsageError(
            f"the pool of {pool} workers is smaller than the {least} there are at the start; give a larger pool, or"
            " fewer workers"
        )


def _passed(since_s: float, now_s: float, hold_s: float) -> bool:
    return (now_s - since_s) * (1 + 1e-9) >= hold_s
