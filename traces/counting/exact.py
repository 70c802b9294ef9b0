"""Counting the keys of a trace on Spark: summaries of blocks by rank, merged inside Spark."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from adapt.core.counting.exact import KeyCounts, count_keys, frequencies_of, merge
from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import BadInput
from adapt.core.stream import Weight
from adapt.traces.counting.weights import SPARK_KEYS, WEIGHT_COLUMNS, added, chosen_weight, weights_of
from adapt.traces.spark.lazy import DataFrame, SparkSession
from adapt.traces.spark.progress import Progress, silent, watched
from adapt.traces.spark.session import Spark, spark_failures, spark_session
from adapt.traces.spark.spark_tasks import in_tasks, shared_out
from adapt.traces.store.trace import Trace, TraceBlock, read_pieces


def count_exactly(
    trace: Trace, *, weight: Weight | None = None, spark_options: Spark = None, progress: Progress = silent
) -> Frequencies:
    """Count the keys of a trace exactly.

    Tasks read only the key and weight columns of their blocks, and pass on one count a distinct key. Whole numbers are
    added as such; costs are added block by block in the order of blocks, so that the result is the same on any cluster.
    A row weighs its cost where the trace has costs and nothing is said, else 1.

    Raises:
        UsageError: the trace has no column of that weight.
        BadInput: a part of the trace is damaged, or its weights add up to more than an int64 holds.
    """
    chosen = chosen_weight(trace, weight)
    spark = spark_session(spark_options)
    with spark_failures("counting keys"), watched(spark, "counting keys", progress):
        summed = summed_keys(spark, trace, [chosen]).toArrow()
    keys = summed["key"].combine_chunks()
    if summed[chosen.value].null_count:
        raise too_heavy(trace.path, chosen)
    counts = summed[chosen.value].combine_chunks().to_numpy(zero_copy_only=False)
    return frequencies_of(KeyCounts(keys, counts, trace.rows), chosen)


def summed_keys(
    spark: SparkSession, trace: Trace, weights: Sequence[Weight], partitions: int | None = None
) -> DataFrame:
    """Every key of a trace with what it weighs, exactly; the weight of a key that is too much for an int64 is null.

    Args:
        weights: What a row weighs, in one way or in several.
        partitions: Among how many Spark shares out the keys; its own default if not given.

    Returns:
        Columns `key` and one for each weight, of its name.

    Raises:
        BadInput: the trace has no rows.
    """
    blocks = trace.blocks()
    if not blocks:
        raise no_keys(trace.path)

    def work(index: int) -> Iterator[pa.RecordBatch]:
        for weight in weights:
            counted = count_block(blocks[index], weight)
            nothing = np.zeros(len(counted.keys), np.int64)
            sums = [counted.counts if each is weight else nothing.astype(_NUMPY[each]) for each in weights]
            yield pa.RecordBatch.from_arrays(
                [counted.keys, pa.array(nothing + index), *map(pa.array, sums)], names=["key", "block", *weights]
            )

    kinds = [f"{weight} {'double' if weight is Weight.COST else 'bigint'}" for weight in weights]
    schema = f"key {SPARK_KEYS[trace.key_type]}, block bigint, {', '.join(kinds)}"
    counted = in_tasks(spark, shared_out(spark, len(blocks)), work, schema)
    together = counted if partitions is None else counted.repartition(partitions, "key")
    return together.groupBy("key").agg(*(added(weight, "block", weight).alias(weight) for weight in weights))


_NUMPY = {Weight.COUNT: np.int64, Weight.BYTES: np.int64, Weight.COST: np.float64}


def no_keys(where: object) -> BadInput:
    """What to raise where there is nothing to count."""
    return BadInput(f"{where} has no rows, so there are no keys to count")


def too_heavy(where: object, weight: str) -> BadInput:
    """What to raise where the whole numbers that one key weighs are too much together."""
    return BadInput(f"{where}: the {weight} of one key add up to more than an int64 holds")


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
