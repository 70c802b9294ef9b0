"""Tasks of a stage: gain of even ones, cause of the longest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapreplace
from math import ceil
from statistics import fmean, median

from adapt.core.spark_stages.plan import Operator

_EXPLAINED = 0.5
"""Least part of the longest task's excess that names its cause."""

_SLOW_HOST = 1.5
"""Time of a row on a host over that of the others from which the host is slow."""


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
    start_ms: int  # 0 if the log has no times
    end_ms: int
    run_ms: int  # executor run time
    collection_ms: int
    rows: int  # read from a shuffle and from input
    read_bytes: int
    spilled_bytes: int
    amounts: Mapping[int, int] = field(default_factory=dict)  # by accumulator of the plan

    @property
    def seconds(self) -> float:
        """From launch to end, or else its run time."""
        return (self.end_ms - self.start_ms or self.run_ms) / 1e3


@dataclass(frozen=True, slots=True)
class Amounts:
    """An amount of the tasks of a stage."""

    longest: float  # of the longest task
    largest: float
    mean: float
    median: float

    @classmethod
    def of(cls, values: Sequence[float], longest: int) -> "Amounts":
        """Of a value per task."""
        return cls(values[longest], max(values), fmean(values), median(values))

    @property
    def ratio(self) -> float:
        """That of the longest task over the mean; 0 without any."""
        return self.longest / self.mean if self.mean else 0.0


@dataclass(frozen=True, slots=True)
class TimesOfTasks:
    """The tasks of a run of a stage in sums."""

    tasks: int
    slots: int  # most tasks that ran at once
    start_s: float
    end_s: float
    work_s: float  # sum over the tasks
    won_s: float  # what even tasks would win
    seconds: Amounts
    rows: Amounts
    read_bytes: Amounts
    pairs: Amounts | None  # rows that its operator gives
    side_rows: tuple[Amounts, ...]  # rows of each shuffle that its operator reads
    side_bytes: tuple[Amounts, ...]
    longest: Task
    slow_host: float  # time of a row on the longest task's host over that on others; 0 if not known

    @classmethod
    def of(cls, tasks: Sequence[Task], operator: Operator | None = None, most_slots: int = 0) -> "TimesOfTasks":
        """Of the tasks of a run, at least one.

        Won is the time that they take on the slots, less that of as many tasks with the same time each.

        Args:
            operator: Whose rows and shuffles are summed up.
            most_slots: Cores of the application; 0 if not known.
        """
        ordered = sorted(tasks, key=lambda task: (task.start_ms, task.end_ms))
        seconds = [task.seconds for task in ordered]
        longest = max(range(len(seconds)), key=seconds.__getitem__)
        slots = _most_at_once(ordered) if any(task.start_ms for task in ordered) else 1
        slots = min(slots, most_slots or slots)
        start_s, end_s = ordered[0].start_ms / 1e3, max(task.end_ms for task in ordered) / 1e3
        takes = min(_makespan(seconds, slots), end_s - start_s or sum(seconds))
        sides = () if operator is None else operator.sides
        pairs = None if operator is None or operator.pairs is None else (operator.pairs,)

        def amounts(accumulators: Sequence[int]) -> Amounts:
            return Amounts.of([sum(task.amounts.get(each, 0) for each in accumulators) for task in ordered], longest)

        return cls(
            tasks=len(ordered),
            slots=slots,
            start_s=start_s,
            end_s=end_s,
            work_s=sum(seconds),
            won_s=max(0.0, takes - ceil(len(ordered) / slots) * fmean(seconds)),
            seconds=Amounts.of(seconds, longest),
            rows=Amounts.of([task.rows for task in ordered], longest),
            read_bytes=Amounts.of([task.read_bytes for task in ordered], longest),
            pairs=None if pairs is None else amounts(pairs),
            side_rows=tuple(amounts(side.rows) for side in sides),
            side_bytes=tuple(amounts(side.read_bytes) for side in sides),
            longest=ordered[longest],
            slow_host=_slow_host(ordered, longest),
        )

    @property
    def cause(self) -> Cause:
        """Why the longest task is long."""
        excess = self.seconds.ratio - 1
        if max(each.ratio for each in self.of_data) - 1 >= _EXPLAINED * excess:
            return Cause.DATA
        if self.longest.collection_ms / 1e3 >= _EXPLAINED * (self.seconds.longest - self.seconds.mean):
            return Cause.COLLECTION
        return Cause.HOST if self.slow_host >= _SLOW_HOST else Cause.UNKNOWN

    @property
    def of_data(self) -> list[Amounts]:
        """Amounts that can explain a long task."""
        return [self.rows, self.read_bytes, *([] if self.pairs is None else [self.pairs])]


def _makespan(seconds: Sequence[float], slots: int) -> float:
    """When the last task ends, if each begins in this order on the next free slot."""
    free = [0.0] * slots
    for each in seconds:
        heapreplace(free, free[0] + each)
    return max(free)


def _most_at_once(tasks: Sequence[Task]) -> int:
    """Most tasks that run at once; one may begin in the millisecond in which another ends."""
    changes = sorted(change for task in tasks for change in ((task.start_ms, 1), (task.end_ms, -1)))
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return max(most, 1)


def _slow_host(tasks: Sequence[Task], longest: int) -> float:
    """Time of a row in the other tasks of the longest's host over that on other hosts; 0 if not known."""
    here, there = ([0.0, 0], [0.0, 0])
    for at, task in enumerate(tasks):
        if at != longest:
            of = here if task.host == tasks[longest].host else there
            of[0], of[1] = of[0] + task.seconds, of[1] + task.rows
    return here[0] / here[1] * there[1] / there[0] if here[1] and there[0] else 0.0
