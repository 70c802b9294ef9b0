"""Numbered work items as Spark tasks that yield Arrow batches."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from adapt.traces.spark.executors import is_local, parallelism
from adapt.traces.spark.lazy import DataFrame, SparkSession
from adapt.traces.spark.session import carrying

TASK_BYTES = 32 << 20
"""Small files share a task up to about this many bytes."""

TASK_FILES = 256
"""Most small files that share a task, as opening one takes longer than reading it."""

TASK_ITEMS = 16
"""Most items of a task, so that a retried task stays small."""

LEAST_TASKS = 32
"""Tasks of a cluster for few items; a multiple of them for more."""


def grouped(items: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Group neighbors, up to some tens of megabytes and `TASK_FILES` per group."""
    groups: list[list[int]] = []
    room = 0
    for item, size in zip(items, sizes, strict=True):
        if not groups or room < size or len(groups[-1]) == TASK_FILES:
            groups.append([])
            room = TASK_BYTES
        groups[-1].append(item)
        room -= size
    return groups


def shared_out(spark: SparkSession, items: int) -> list[list[int]]:
    """Divide items among tasks, neighbors together.

    Starting a task costs as much as counting two million rows, so tasks are few. A local Spark gets equally many per
    core; a cluster a number that depends on the items alone, as its executors come and go.
    """
    cores = parallelism(spark) if is_local(spark) else LEAST_TASKS
    tasks = min(items, -(-items // (TASK_ITEMS * cores)) * cores)
    return [list(range(items * at // tasks, items * (at + 1) // tasks)) for at in range(tasks)]


def attempt_id() -> int:
    """The unique number of this task attempt; 0 outside a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.taskAttemptId()


def in_process(
    tasks: Sequence[Sequence[int]], work: Callable[[int], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Run `work` on each item in this process, in order."""
    return (batch for items in tasks for item in items for batch in work(item))


def in_tasks(
    spark: SparkSession, tasks: Sequence[Sequence[int]], work: Callable[[int], Iterator[pa.RecordBatch]], schema: Any
) -> DataFrame:
    """Run `work` on each item, one Spark task per group."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for group in batch.column(0).to_pylist():
                for number in tasks[group]:
                    yield from work(number)

    groups = len(tasks)
    return spark.range(0, groups, 1, max(1, groups)).mapInArrow(carrying(run), schema)  # one number per partition
