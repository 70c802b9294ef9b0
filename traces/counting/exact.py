"""Exact counting of the keys of a trace."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from adapt.core.counting.exact import KeyCounts, count_keys, frequencies_of, merge
from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import BadInput
from adapt.core.stream import Weight
from adapt.traces.block_cache import kept_blocks, rows_held
from adapt.traces.counting.weights import WEIGHT_COLUMNS, chosen_weight, spark_key, weights_of
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockSums, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import Trace, TraceBlock, read_pieces

ROWS_A_PARTITION = 1 << 21
"""Rows of the trace per Spark partition of its keys, hence the most keys of a partition."""


def count_exactly(
    trace: Trace, *, weight: Weight | None = None, spark_options: Spark = None, progress: Progress = silent
) -> Frequencies:
    """Count the keys of a trace exactly.

    Tasks read only key and weight columns and emit one count per distinct key. Integers are summed as integers, costs
    in the order of blocks, so the result is the same on any cluster. By default a row weighs its cost if the trace has
    costs, else 1.
    """
    chosen = chosen_weight(trace, weight)
    asked = replace(key_sums(trace, [chosen], "counting keys"), most=int(trace.profile["distinct_keys"]))
    summed = runner_for(rows_of_sums(trace), spark_options, progress).sums(asked)
    keys = summed["key"].combine_chunks()
    if summed[chosen.value].null_count:
        raise too_heavy(trace.path, chosen)
    counts = summed[chosen.value].combine_chunks().to_numpy(zero_copy_only=False)
    return frequencies_of(KeyCounts(keys, counts, trace.rows), chosen, trace.key_type)


def rows_of_sums(trace: Trace, weights: int = 1) -> int:
    """Rows that decide where keys are summed exactly; see `rows_held`."""
    keys = int(trace.profile["distinct_keys"])
    return rows_held(trace, trace.blocks(), lambda _: keys * weights)


def key_sums(trace: Trace, weights: Sequence[Weight], doing: str) -> BlockSums:
    """Work that sums the weights of every key exactly.

    Args:
        weights: What a row weighs, in one way or in several.
        doing: As in `BlockSums`.

    Returns:
        Sums with the columns `key` and one per weight, of its name.
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

    kept = kept_blocks(trace.path, trace.manifest.files, blocks, work, lambda _: ["exact", *weights])
    kinds = [f"{weight} {'double' if weight is Weight.COST else 'bigint'}" for weight in weights]
    schema = f"key {spark_key(trace.key_type)}, block bigint, {', '.join(kinds)}"
    amounts = {weight.value: weight for weight in weights}
    return BlockSums(
        doing, len(blocks), kept, schema, ["key"], amounts, "block", partitions=-(-trace.rows // ROWS_A_PARTITION)
    )


_NUMPY = {Weight.COUNT: np.int64, Weight.BYTES: np.int64, Weight.COST: np.float64}


def no_keys(where: object) -> BadInput:
    """The error for a source without rows."""
    return BadInput(f"{where} has no rows to count")


def too_heavy(where: object, weight: str) -> BadInput:
    """The error for a key whose integer weights overflow."""
    return BadInput(f"{where}: the total {weight} of one key overflows an int64; use a larger unit")


def count_block(block: TraceBlock, weight: Weight) -> KeyCounts:
    """The exact counts of one block; costs are added row by row."""
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
