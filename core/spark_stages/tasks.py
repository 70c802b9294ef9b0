"""Tasks of a stage: gain of even ones, cause of the longest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapreplace
from itertools import accumulate
from math import ceil
from statistics import fmean, median

from adapt.core.spark_stages.plan import Operator

_EXPLAINED, _SLOW_HOST = 0.5, 1.5
"""Least part of the longest task's excess that names its cause; least time of a row on a slow host over others."""


class Cause(StrEnum):
    """Why the longest task of a stage is longer than the mean."""

    DATA = "data"
    """It has more rows or bytes than the others."""
    COLLECTION = "garbage collection"
    HOST = "slow host"
    """Rows are even, and other tasks of its host are slow too."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Task:
    """A successful task; the last attempt of its index."""

    host: str
    start_ms: int
    end_ms: int
    collection_ms: int
    rows: int  # read from a shuffle and from input
    read_bytes: int
    spilled_bytes: int
    amounts: Mapping[int, int] = field(default_factory=dict)  # by accumulator of the plan


@dataclass(frozen=True, slots=True)
class Amounts:
    """An amount of the tasks of a stage."""

    longest: float  # of the longest task
    largest: float
    mean: float
    median: float

    @property
    def ratio(self) -> float:
        """That of the longest task over the mean; 0 without any."""
        return self.longest / self.mean if self.mean else 0.0


@dataclass(frozen=True, slots=True)
class TimesOfTasks:
    """The tasks of a run of a stage in sums."""

    tasks: int
    slots: int  # most tasks that ran at once
    span_s: tuple[float, float]  # first start, last end
    won_s: float  # what even tasks would win
    seconds: Amounts
    rows: Amounts
    read_bytes: Amounts
    pairs: Amounts  # rows that its operator gives; 0 if not known
    side_rows: tuple[Amounts, ...]  # rows of each shuffle that its operator reads
    side_bytes: tuple[Amounts, ...]
    longest: Task
    slow_host: float  # time of a row on the longest task's host over that on others; 0 if not known

    @classmethod
    def of(cls, tasks: Sequence[Task], operator: Operator | None = None, cores: int = 0) -> "TimesOfTasks":
        """Of the tasks of a run, at least one.

        Won is the time that they take on the slots, less that of as many tasks with the same time each.

        Args:
            operator: Whose rows and shuffles are summed up.
            cores: Most slots of the application; 0 if not known.
        """
        tasks = sorted(tasks, key=lambda task: (task.start_ms, task.end_ms))
        seconds = [(task.end_ms - task.start_ms) / 1e3 for task in tasks]
        longest = max(range(len(seconds)), key=seconds.__getitem__)
        changes = sorted(change for task in tasks for change in ((task.start_ms, 1), (task.end_ms, -1)))
        slots = max(accumulate(change for _, change in changes)) or 1
        slots = min(slots, cores or slots)
        span_s = tasks[0].start_ms / 1e3, max(task.end_ms for task in tasks) / 1e3
        takes = min(_makespan(seconds, slots), span_s[1] - span_s[0])

        def amounts(values: Sequence[float]) -> Amounts:
            return Amounts(values[longest], max(values), fmean(values), median(values))

        def counted(accumulators: Sequence[int | None]) -> Amounts:
            return amounts([sum(task.amounts.get(each, 0) for each in accumulators if each) for task in tasks])

        return cls(
            tasks=len(tasks),
            slots=slots,
            span_s=span_s,
            won_s=max(0.0, takes - ceil(len(tasks) / slots) * fmean(seconds)),
            seconds=amounts(seconds),
            rows=amounts([task.rows for task in tasks]),
            read_bytes=amounts([task.read_bytes for task in tasks]),
            pairs=counted([operator.pairs] if operator else []),
            side_rows=tuple(counted(side.rows) for side in (operator.sides if operator else ())),
            side_bytes=tuple(counted(side.read_bytes) for side in (operator.sides if operator else ())),
            longest=tasks[longest],
            slow_host=_slow_host(tasks, seconds, longest),
        )

    @property
    def cause(self) -> Cause:
        """Why the longest task is long."""
        if max(self.rows.ratio, self.read_bytes.ratio, self.pairs.ratio) - 1 >= _EXPLAINED * (self.seconds.ratio - 1):
            return Cause.DATA
        if self.longest.collection_ms / 1e3 >= _EXPLAINED * (self.seconds.longest - self.seconds.mean):
            return Cause.COLLECTION
        return Cause.HOST if self.slow_host >= _SLOW_HOST else Cause.UNKNOWN


def _makespan(seconds: Sequence[float], slots: int) -> float:
    """When the last task ends, if each begins in this order on the next free slot."""
    free = [0.0] * slots
    for each in seconds:
        heapreplace(free, free[0] + each)
    return max(free)


def _slow_host(tasks: Sequence[Task], seconds: Sequence[float], longest: int) -> float:
    """Time of a row in the other tasks of the longest's host over that on other hosts; 0 if not known."""
    sums = {True: [0.0, 0], False: [0.0, 0]}
    for at, task in enumerate(tasks):
        if at != longest:
            of = sums[task.host == tasks[longest].host]
            of[0], of[1] = of[0] + seconds[at], of[1] + task.rows
    here, there = sums[True], sums[False]
    return here[0] / here[1] * there[1] / there[0] if here[1] and there[0] else 0.0
