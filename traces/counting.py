"""Counting the keys of a trace on Spark: summaries of blocks by rank, merged inside Spark."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.frequencies.exact import KeyCounts, count_keys, frequencies_of, merge
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.stream import Weight
from adapt.traces.artefacts.trace import Trace, TraceBlock, read_pieces
from adapt.traces.progress import Progress, silent, watched
from adapt.traces.session import SparkOptions, spark_failures, spark_session
from adapt.traces.tasks import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WEIGHT_COLUMNS = {Weight.COST: "cost_us", Weight.BYTES: "bytes"}
"""Where a row's weight stands; a missing weight is nothing."""


def count_trace(
    trace: Trace,
    *,
    weight: Weight | None = None,
    spark_options: SparkOptions | None = None,
    progress: Progress = silent,
) -> Frequencies:
    """Count the keys of a trace exactly.

    Tasks read only the key and weight columns of their blocks, and pass on one count a distinct key. Whole numbers are
    added as such; costs are added block by block in the order of blocks, so that the result is the same on any cluster.

    Args:
        weight: What a row weighs; cost where the trace has costs and nothing is said, else 1.

    Raises:
        UsageError: the trace has no column of that weight.
        BadInput: a part of the trace is damaged, or its weights add up to more than an int64 holds.
    """
    chosen = chosen_weight(trace, weight)
    spark = spark_session(spark_options)
    blocks = trace.blocks()

    def work(index: int) -> Iterator[pa.RecordBatch]:
        counted = count_block(blocks[index], chosen)
        yield pa.RecordBatch.from_arrays(
            [counted.keys, pa.array(counted.counts), pa.array(np.full(len(counted.keys), index, np.int64))],
            names=["key", "weight", "block"],
        )

    key_kind = {"string": "string", "int64": "bigint", "binary": "binary"}[trace.key_type]
    weight_kind = "double" if chosen is Weight.COST else "bigint"
    with spark_failures("counting keys"), watched(spark, "counting keys", progress):
        tasks = [[block.index] for block in blocks]
        schema = f"key {key_kind}, weight {weight_kind}, block bigint"
        summed = _summed(in_tasks(spark, tasks, work, schema), chosen).toArrow()
    keys = summed["key"].combine_chunks()
    if summed["weight"].null_count:
        raise BadInput(f"{trace.path}: the {chosen} of one key add up to more than an int64 holds")
    counts = summed["weight"].combine_chunks().to_numpy(zero_copy_only=False)
    return frequencies_of(KeyCounts(keys, counts, trace.rows), chosen)


def default_weight(trace: Trace) -> Weight:
    """Cost where the trace has costs, else the count of rows (design, section 5)."""
    return Weight.COST if "cost_us" in trace.columns else Weight.COUNT


def chosen_weight(trace: Trace, weight: Weight | None) -> Weight:
    """The weight that was asked for, or the trace's default.

    Raises:
        UsageError: the trace has no column of that weight.
    """
    chosen = weight or default_weight(trace)
    if chosen is not Weight.COUNT and WEIGHT_COLUMNS[chosen] not in trace.columns:
        raise UsageError(f"--weight {chosen}: {trace.path} has no {chosen}; ingest it with --{chosen} COLUMN")
    return chosen


def count_block(block: TraceBlock, weight: Weight) -> KeyCounts:
    """The exact counts of one block; costs are added row after row, wherever its row groups end."""
    names = ["key"] if weight is Weight.COUNT else ["key", WEIGHT_COLUMNS[weight]]
    batches = read_pieces(block.pieces, names)
    if weight is not Weight.COST:
        return merge(count_keys(batch.column("key"), weights_of(batch, weight)) for batch in batches)
    read = list(batches)
    kind = read[0].column("key").type
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)
    keys = pa.concat_arrays([batch.column("key").cast(wide) for batch in read])
    counted = count_keys(keys, np.concatenate([weights_of(batch, weight) for batch in read]))
    return KeyCounts(counted.keys.cast(kind), counted.counts, counted.rows)


def weights_of(batch: pa.RecordBatch, weight: Weight) -> NDArray[np.int64] | NDArray[np.float64] | None:
    """What each row of a batch weighs, or None for 1 each; a missing weight is 0."""
    if weight is Weight.COUNT:
        return None
    values: NDArray[np.int64] | NDArray[np.float64] = pc.fill_null(batch.column(WEIGHT_COLUMNS[weight]), 0).to_numpy(
        zero_copy_only=False
    )
    return values


def _summed(partial: "DataFrame", weight: Weight) -> "DataFrame":
    """One row a key; costs are added in the order of blocks, since their sum depends on the order."""
    from pyspark.sql import functions as F

    if weight is not Weight.COST:
        return partial.groupBy("key").agg(F.try_sum("weight").alias("weight"))
    in_order = F.array_sort(F.collect_list(F.struct("block", "weight")))
    total = F.aggregate(in_order, F.lit(0.0), lambda sum_so_far, part: sum_so_far + part["weight"])
    return partial.groupBy("key").agg(total.alias("weight"))
