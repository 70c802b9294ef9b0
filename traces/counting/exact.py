"""Exact counting of the keys of a trace."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.exact import KeyCounts, KeyTable, count_keys, frequencies_of, merge, refuse_overflow
from adapt.core.counting.frequencies import Counts, Frequencies, MeasuredColumn
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.stream import KeyType, Weight
from adapt.traces.block_cache import kept_blocks, rows_held
from adapt.traces.locations.series_path import SeriesPath
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockSums, log_ran, runner_for, runs_on_spark
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import Trace, TraceBlock, read_pieces

WEIGHT_COLUMNS = {Weight.COST: "cost_us", Weight.BYTES: "bytes"}
"""The column of each weight; a null weighs 0."""

_SPARK_KEYS = {KeyType.STRING: "string", KeyType.INT64: "bigint", KeyType.BINARY: "binary"}


def spark_key(key_type: KeyType) -> str:
    """Spark's name of the type of the column that holds such keys."""
    return _SPARK_KEYS[key_type.storage]


def default_weight(trace: Trace) -> Weight:
    """Cost if the trace has costs, else the count of rows."""
    return Weight.COST if "cost_us" in trace.columns else Weight.COUNT


def chosen_weight(trace: Trace, weight: Weight | None) -> Weight:
    """The requested weight, or the trace's default."""
    chosen = weight or default_weight(trace)
    if chosen is not Weight.COUNT and WEIGHT_COLUMNS[chosen] not in trace.columns:
        raise UsageError(f"--weight {chosen}: {trace.path} has no {chosen} column; ingest it with --{chosen} COLUMN")
    return chosen


def weights_of(batch: pa.RecordBatch, weight: Weight) -> NDArray[np.int64] | NDArray[np.float64] | None:
    """The weight of each row; None if each weighs 1."""
    if weight is Weight.COUNT:
        return None
    values: NDArray[np.int64] | NDArray[np.float64] = pc.fill_null(batch.column(WEIGHT_COLUMNS[weight]), 0).to_numpy(
        zero_copy_only=False
    )
    return values


ROWS_A_PARTITION = 1 << 21
"""Rows of the trace per Spark partition of its keys, hence the most keys of a partition."""


EXACT_KEYS = 1 << 21
"""Up to about this many keys, a table of all is cheaper than lossy counting; it takes 200 MB."""


def fit_table(trace: Trace, weight: Weight) -> bool:
    """Whether one table may count all keys."""
    return weight is Weight.COUNT and int(trace.profile["distinct_keys"]) <= EXACT_KEYS


def count_exactly(
    trace: Trace,
    *,
    weight: Weight | None = None,
    most: int | None = None,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Frequencies:
    """Count the keys of a trace exactly.

    Tasks read only key and weight columns and emit one count per distinct key. Integers are summed as integers, costs
    in the order of blocks, so the result is the same on any cluster. By default a row weighs its cost if the trace has
    costs, else 1.

    Args:
        most: As in `frequencies_of`.
    """
    chosen = chosen_weight(trace, weight)
    if fit_table(trace, chosen) and not (isinstance(trace.path, SeriesPath) or runs_on_spark(0, spark_options)):
        return frequencies_of(_counted_here(trace, progress), chosen, trace.key_type, most)
    asked = replace(key_sums(trace, [chosen], "counting keys"), most=int(trace.profile["distinct_keys"]))
    summed = runner_for(rows_of_sums(trace), spark_options, progress).sums(asked)
    keys = summed["key"].combine_chunks()
    if summed[chosen.value].null_count:
        raise too_heavy(trace.path, chosen)
    counts = summed[chosen.value].combine_chunks().to_numpy(zero_copy_only=False)
    return frequencies_of(KeyCounts(keys, counts, trace.rows), chosen, trace.key_type, most)


def _counted_here(trace: Trace, progress: Progress) -> KeyCounts:
    """The rows of each key, by one table; the next rows are read meanwhile."""
    log_ran(RunnerName.IN_PROCESS)
    table = KeyTable(trace.key_type, 21 * int(trace.profile["distinct_keys"]) // 20)  # it is estimated within 2 %
    for batch in read_pieces([piece for block in trace.blocks() for piece in block.pieces], ["key"], ["key"]):
        table.add(batch.column("key"))
        progress("counting keys", table.rows, trace.rows)
    return table.counted()


def rows_of_sums(trace: Trace, weights: int = 1) -> int:
    """Rows of sums that decide where keys are summed exactly; see `rows_held`."""
    keys = int(trace.profile["distinct_keys"])
    return rows_held(trace.blocks(), lambda _: keys * weights)


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


_ROW, _BLOCK = "row", "block"
_OTHERS = -1
"""The row of all unlisted keys."""


def measurable(trace: Trace) -> tuple[Weight, ...]:
    """Measurable columns of a trace: count, cost and bytes if present."""
    return tuple(weight for weight in Weight if WEIGHT_COLUMNS.get(weight, "key") in trace.columns)


def check_measurable(trace: Trace, sources: Sequence[str]) -> tuple[Weight, ...]:
    """The measured columns by name."""
    known = {weight.value: weight for weight in measurable(trace)}
    for source in sources:
        if source not in known:
            hint = f"; ingest it with --{source} COLUMN" if source in list(Weight) else did_you_mean(source, known)
            raise UsageError(f"--measure {source}: {trace.path} has no {source} column{hint}")
    return tuple(known[source] for source in sources)


def with_columns(
    trace: Trace,
    frequencies: Frequencies,
    sources: Sequence[str],
    *,
    spark_options: Spark = None,
    progress: Progress = silent,
) -> Frequencies:
    """Counted keys with sums of some columns; raises as `measure_columns` does."""
    exact = [source for source in sources if source == frequencies.weight and frequencies.exact]
    others = [source for source in sources if source not in exact]
    columns = measure_columns(trace, frequencies.keys, others, spark_options=spark_options, progress=progress)
    of = {column.source: column for column in (*columns, *(frequencies.column(source) for source in exact))}
    return replace(frequencies, measured=tuple(of[source] for source in sorted(of)))


def measure_columns(
    trace: Trace, keys: pa.Array, sources: Sequence[str], *, spark_options: Spark = None, progress: Progress = silent
) -> tuple[MeasuredColumn, ...]:
    """Sum columns of a trace by listed key.

    A task holds one sum per listed key and column. Integers are summed as integers, costs in the order of rows and
    blocks, so the result is the same on any cluster.

    Args:
        keys: Distinct keys; shape (keys,).
        sources: Names of `measurable` columns.

    Returns:
        One column per source, values in the order of the keys.
    """
    columns = check_measurable(trace, sources)
    blocks = trace.blocks()
    if not blocks or not columns:
        return tuple(MeasuredColumn(source, np.zeros(len(keys)), 0.0) for source in sources)

    def work(index: int) -> Iterator[pa.RecordBatch]:
        yield measure_block(blocks[index], keys, columns)

    kinds = ", ".join(f"{column} {'double' if column is Weight.COST else 'bigint'}" for column in columns)
    schema = f"{_ROW} bigint, {_BLOCK} bigint, {kinds}"
    amounts = {column.value: column for column in columns}
    asked = BlockSums("measuring keys", len(blocks), work, schema, [_ROW], amounts, _BLOCK, most=len(keys) + 1)
    held = rows_held(blocks, lambda _: len(keys) + 1)
    summed = runner_for(held, spark_options, progress).sums(asked)
    rows = summed[_ROW].to_numpy()
    return tuple(_column(trace, column, rows, summed[column.value], len(keys)) for column in columns)


def measure_block(block: TraceBlock, keys: pa.Array, columns: Sequence[Weight]) -> pa.RecordBatch:
    """The sums of one block by listed key, and of others."""
    names = list(dict.fromkeys(["key", *(WEIGHT_COLUMNS[column] for column in columns if column is not Weight.COUNT)]))
    sums = [zeros(len(keys) + 1, column) for column in columns]
    met = np.zeros(len(keys) + 1, np.bool_)
    for batch in read_pieces(block.pieces, names):
        encoded = pc.dictionary_encode(batch.column("key"), null_encoding="encode")
        places = pc.index_in(encoded.dictionary.cast(keys.type), value_set=keys).fill_null(len(keys))
        rows = places.to_numpy(zero_copy_only=False)[encoded.indices.to_numpy(zero_copy_only=False)]
        met[rows] = True
        for column, sum_of in zip(columns, sums, strict=True):
            values = weights_of(batch, column)
            if values is None:
                sum_of += np.bincount(rows, minlength=len(sum_of))
                continue
            _check(values, column)
            refuse_overflow(values, float(sum_of.sum(dtype=np.float64)))
            np.add.at(sum_of, rows, values)
    listed = np.flatnonzero(met)
    row_of = np.where(listed < len(keys), listed, _OTHERS).astype(np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array(row_of), pa.array(np.full(len(listed), block.index)), *(pa.array(each[listed]) for each in sums)],
        names=[_ROW, _BLOCK, *(column.value for column in columns)],
    )


def _column(trace: Trace, column: Weight, rows: Counts, sums: pa.ChunkedArray, keys: int) -> MeasuredColumn:
    if sums.null_count:
        raise too_heavy(trace.path, column)
    found = sums.to_numpy()
    values = np.zeros(keys)
    values[rows[rows != _OTHERS]] = found[rows != _OTHERS]
    return MeasuredColumn(column.value, values, float(values.sum() + found[rows == _OTHERS].sum()))


def zeros(size: int, column: Weight) -> Counts:
    """Sums of a column that are still nothing."""
    return np.zeros(size, np.float64) if column is Weight.COST else np.zeros(size, np.int64)


def _check(values: Counts, column: Weight) -> None:
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise BadInput(f"{column} must be finite and at least 0 in every row (got {values[wrong[0]]:g})")
