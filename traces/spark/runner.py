"""Runners for the blocks of a trace: Spark, or this process.

Both give the same result. Sums of whole numbers are exact, and floats are added in the order of blocks.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.stream import Weight
from adapt.traces.spark.executors import is_local, parallelism
from adapt.traces.spark.lazy import Column, DataFrame, F, SparkSession
from adapt.traces.spark.names import RUNNER_LOG, RunnerName
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import (
    RESULT_BYTES,
    RESULT_SETTING,
    Batches,
    Spark,
    SparkOptions,
    carrying,
    check_held,
    fit_here,
    spark_failures,
    spark_session,
)

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
    if "pyspark" not in sys.modules:
        return 0
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.taskAttemptId()


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


Narrowing: TypeAlias = Callable[[DataFrame], DataFrame]

_HELD_ROWS = 1 << 20
"""A task adds up the rows of its blocks once it holds this many."""


@dataclass(frozen=True, slots=True)
class BlockRows:
    """Work on blocks that gives rows."""

    doing: str  # a few words for progress and errors, such as "counting keys"
    blocks: int  # how many blocks there are
    work: Callable[[int], Batches]  # the rows of a block, given its number; called in any process
    schema: str  # the Spark schema of these rows
    # the blocks of each Spark task; None shares them out
    tasks: Sequence[Sequence[int]] | None = field(default=None, kw_only=True)
    # adds up the rows of some blocks in their task; without effect on the result
    together: Callable[[pa.Table], pa.Table] = field(default=lambda rows: rows, kw_only=True)
    # most rows that come to this process, for the limit and the log; None if few
    most: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class BlockSums(BlockRows):
    """Work on blocks whose rows are summed by group."""

    by: Sequence[str]  # the columns whose equal values belong together
    amounts: Mapping[str, Weight]  # the columns to add up, each with what it weighs
    order: str  # the column with the number of the block
    partitions: int | None = None  # Spark partitions of the sums; None leaves them to Spark
    # drops rows of the sums inside Spark; without effect on the result
    narrow: Narrowing = field(default=lambda sums: sums)


class Runner(Protocol):
    """A place to work on the blocks of a trace."""

    @property
    def name(self) -> RunnerName:
        """The name for manifests and messages."""

    def rows(self, asked: BlockRows) -> pa.Table:
        """The rows of all blocks, in any order."""

    def sums(self, asked: BlockSums) -> pa.Table:
        """The sums by group, in any order; null where an int64 overflows."""

    def from_sums(self, asked: BlockSums, then: Callable[[Batches], Batches], schema: str) -> pa.Table:
        """The rows that `then` makes of the sums, part by part."""


@dataclass(frozen=True, slots=True)
class SparkRunner:
    """Spark tasks; bounded memory for any trace."""

    size: int
    options: Spark
    progress: Progress
    name: RunnerName = RunnerName.SPARK

    def rows(self, asked: BlockRows) -> pa.Table:
        """As `Runner.rows`."""
        return self._run(asked, lambda rows: rows)

    def sums(self, asked: BlockSums) -> pa.Table:
        """As `Runner.sums`."""
        return self._run(asked, self._sums(asked))

    def from_sums(self, asked: BlockSums, then: Callable[[Batches], Batches], schema: str) -> pa.Table:
        """As `Runner.from_sums`."""
        return self._run(asked, lambda rows: self._sums(asked)(rows).mapInArrow(carrying(then), schema))

    def _sums(self, asked: BlockSums) -> Narrowing:
        def of(rows: DataFrame) -> DataFrame:
            parted = rows if asked.partitions is None else rows.repartition(asked.partitions, asked.by[-1])
            return asked.narrow(spark_sums(parted, asked.by, asked.amounts, asked.order))

        return of

    def _run(self, asked: BlockRows, then: Narrowing) -> pa.Table:
        """What becomes of the rows of all blocks."""
        options = self.options or SparkOptions()
        spark = spark_session(options.for_work(small=fit_here(self.size)))
        log_ran(self.name)
        if asked.most is not None:
            check_held(asked.doing, asked.most, asked.schema, spark.conf.get(RESULT_SETTING, RESULT_BYTES) or "")
        with spark_failures(asked.doing), watched(spark, asked.doing, self.progress):
            tasks = asked.tasks or shared_out(spark, asked.blocks)
            work = partial(_of_task, asked.work, asked.together, tasks)
            return then(in_tasks(spark, [[at] for at in range(len(tasks))], work, asked.schema)).toArrow()


@dataclass(frozen=True, slots=True)
class InProcessRunner:
    """Threads of this process, which holds all rows; for short traces."""

    progress: Progress
    name: RunnerName = RunnerName.IN_PROCESS

    def rows(self, asked: BlockRows) -> pa.Table:
        """As `Runner.rows`, in the order of blocks."""
        log_ran(self.name)
        self.progress(asked.doing, 0, asked.blocks)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = self._counted(asked, pool.map(partial(_all, asked.work), range(asked.blocks)))
            return pa.Table.from_batches(list(_together(found, asked.together)))

    def _counted(self, asked: BlockRows, found: Iterable[list[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
        """The rows of each block, with progress."""
        for done, batches in enumerate(found, 1):
            yield batches
            self.progress(asked.doing, done, asked.blocks)

    def sums(self, asked: BlockSums) -> pa.Table:
        """As `Runner.sums`."""
        return added(self.rows(asked), asked.by, asked.amounts)

    def from_sums(self, asked: BlockSums, then: Callable[[Batches], Batches], schema: str) -> pa.Table:  # noqa: ARG002
        """As `Runner.from_sums`."""
        return pa.Table.from_batches(list(then(iter(self.sums(asked).to_batches()))))


def runner_for(rows: int, options: Spark, progress: Progress) -> Runner:
    """Spark if requested or for many rows of results, else this process."""
    return SparkRunner(rows, options, progress) if runs_on_spark(rows, options) else InProcessRunner(progress)


def runs_on_spark(rows: int, options: Spark) -> bool:
    """Whether work runs on Spark: if requested, or for large results."""
    return (options or SparkOptions()).on_spark(small=fit_here(rows))


def log_ran(name: RunnerName) -> None:
    """Log where a piece of work runs."""
    logging.getLogger(RUNNER_LOG).info("ran on Spark" if name is RunnerName.SPARK else "ran in this process")


def spark_sums(rows: DataFrame, by: Sequence[str], amounts: Mapping[str, Weight], order: str) -> DataFrame:
    """Rows added up inside Spark; columns as in `BlockSums`."""
    sums = (_spark_sum(amount, order, weight).alias(amount) for amount, weight in amounts.items())
    return rows.groupBy(*by).agg(*sums)


def _spark_sum(column: str, order: str, weight: Weight) -> Column:
    """The sum of a column in a group; whole sums that overflow are null, floats are added in the order of blocks."""
    if weight is not Weight.COST:
        return F.try_sum(column)
    in_order = F.array_sort(F.collect_list(F.struct(F.col(order), F.col(column))))
    return F.aggregate(in_order, F.lit(0.0), lambda so_far, part: so_far + part[column])


def _of_task(
    work: Callable[[int], Batches], together: Callable[[pa.Table], pa.Table], tasks: Sequence[Sequence[int]], task: int
) -> Iterator[pa.RecordBatch]:
    """The rows of the blocks of a task, some blocks at a time together."""
    return _together((_all(work, block) for block in tasks[task]), together)


def _together(
    blocks: Iterable[list[pa.RecordBatch]], together: Callable[[pa.Table], pa.Table]
) -> Iterator[pa.RecordBatch]:
    """The rows of blocks, those of some at a time together; without rows an empty batch, which has the columns."""
    held: list[pa.RecordBatch] = []
    for done, found in enumerate(blocks, 1):
        held += found
        if held and (done % TASK_ITEMS == 0 or sum(map(len, held)) > _HELD_ROWS):
            yield from _batches(together(pa.Table.from_batches(held)))
            held = []
    if held:
        yield from _batches(together(pa.Table.from_batches(held)))


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    """The batches of a table, at least one."""
    return table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]


def _all(work: Callable[[int], Iterable[pa.RecordBatch]], block: int) -> list[pa.RecordBatch]:
    return list(work(block))


def added(rows: pa.Table, by: Sequence[str], amounts: Mapping[str, Weight]) -> pa.Table:
    """Rows added up in their order; columns as in `BlockSums`."""
    grouped = rows.group_by(list(by), use_threads=False).aggregate([(amount, "sum") for amount in amounts])
    sums = {name: grouped[name] for name in by}
    for amount, weight in amounts.items():
        sums[amount] = grouped[f"{amount}_sum"]
        if weight is not Weight.COST and may_overflow(rows[amount]):
            sums[amount] = _exact_sums(rows, by, amount)
    return pa.table(sums)


def may_overflow(values: pa.ChunkedArray) -> bool:
    """Whether some sum of whole numbers may not fit an int64."""
    total = pc.sum(values.cast(pa.float64(), safe=False)).as_py()
    return total is not None and total >= 2.0**62


def _exact_sums(rows: pa.Table, by: Sequence[str], amount: str) -> pa.ChunkedArray:
    """Whole sums by group, in the order of `added`; null where one does not fit an int64."""
    lists = rows.group_by(list(by), use_threads=False).aggregate([(amount, "list")])[f"{amount}_list"]
    totals = (sum(values) for values in lists.to_pylist())
    return pa.chunked_array([pa.array([total if total < 2**63 else None for total in totals], pa.int64())])
