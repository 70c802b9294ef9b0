"""Sums of trace columns per listed key, on Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.counting.exact import refuse_overflow
from adapt.core.counting.frequencies import Counts, Frequencies, MeasuredColumn
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.stream import Weight
from adapt.traces.counting.exact import too_heavy
from adapt.traces.counting.weights import WEIGHT_COLUMNS, weights_of
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockSums, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store.trace import Trace, TraceBlock, read_pieces

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
    summed = runner_for(trace.rows, spark_options, progress).sums(asked)
    rows = summed[_ROW].to_numpy()
    return tuple(_column(trace, column, rows, summed[column.value], len(keys)) for column in columns)


def measure_block(block: TraceBlock, keys: pa.Array, columns: Sequence[Weight]) -> pa.RecordBatch:
    """The sums of one block by listed key, and of others."""
    names = list(dict.fromkeys(["key", *(WEIGHT_COLUMNS[column] for column in columns if column is not Weight.COUNT)]))
    sums = [_zeros(len(keys) + 1, column) for column in columns]
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


def _zeros(size: int, column: Weight) -> Counts:
    return np.zeros(size, np.float64) if column is Weight.COST else np.zeros(size, np.int64)


def _check(values: Counts, column: Weight) -> None:
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise BadInput(f"{column} must be finite and at least 0 in every row (got {values[wrong[0]]:g})")
