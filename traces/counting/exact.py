"""Counting the keys of a trace on Spark: summaries of blocks by rank, merged inside Spark."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from adapt.core.errors import BadInput
from adapt.core.frequencies.exact import KeyCounts, count_keys, frequencies_of, merge
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.stream import Weight
from adapt.traces.artefacts.trace import Trace, TraceBlock, read_pieces
from adapt.traces.counting.weights import SPARK_KEYS, WEIGHT_COLUMNS, added, chosen_weight, weights_of
from adapt.traces.progress import Progress, silent, watched
from adapt.traces.session import SparkOptions, spark_failures, spark_session
from adapt.traces.tasks import in_tasks, shared_out


def count_exactly(
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
    if not blocks:
        raise BadInput(f"{trace.path} has no rows, so there are no keys to count")

    def work(index: int) -> Iterator[pa.RecordBatch]:
        counted = count_block(blocks[index], chosen)
        yield pa.RecordBatch.from_arrays(
            [counted.keys, pa.array(counted.counts), pa.array(np.full(len(counted.keys), index, np.int64))],
            names=["key", "weight", "block"],
        )

    weight_kind = "double" if chosen is Weight.COST else "bigint"
    with spark_failures("counting keys"), watched(spark, "counting keys", progress):
        schema = f"key {SPARK_KEYS[trace.key_type]}, weight {weight_kind}, block bigint"
        summed = (
            in_tasks(spark, shared_out(spark, len(blocks)), work, schema)
            .groupBy("key")
            .agg(added("weight", "block", chosen).alias("weight"))
            .toArrow()
        )
    keys = summed["key"].combine_chunks()
    if summed["weight"].null_count:
        raise BadInput(f"{trace.path}: the {chosen} of one key add up to more than an int64 holds")
    counts = summed["weight"].combine_chunks().to_numpy(zero_copy_only=False)
    return frequencies_of(KeyCounts(keys, counts, trace.rows), chosen)


def count_block(block: TraceBlock, weight: Weight) -> KeyCounts:
    """The exact counts of one block; costs are added row after row, wherever its row groups end."""
    names = ["key"] if weight is Weight.COUNT else ["key", WEIGHT_COLUMNS[weight]]
    batches = read_pieces(block.pieces, names, names if weight is Weight.COUNT else ())
    if weight is not Weight.COST:
        return merge(count_keys(batch.column("key"), weights_of(batch, weight)) for batch in batches)
    read = list(batches)
    kind = read[0].column("key").type
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)
    keys = pa.concat_arrays([batch.column("key").cast(wide) for batch in read])
    counted = count_keys(keys, np.concatenate([weights_of(batch, weight) for batch in read]))
    return KeyCounts(counted.keys.cast(kind), counted.counts, counted.rows)
