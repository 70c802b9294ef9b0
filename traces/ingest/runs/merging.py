"""Merge of sorted runs into the parts of a trace, cut at exact ranks of their order."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.traces.ingest.profile import TOLD, Profile, Profiler
from adapt.traces.ingest.runs.run_files import INDEX_ROWS, Run, rising
from adapt.traces.ingest.runs.sieve import PLACES
from adapt.traces.parts import part_name, part_writer, remove_unfinished
from adapt.traces.spark.lazy import SparkSession
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.runner import attempt_id, in_tasks, shared_out
from adapt.traces.spark.session import spark_failures
from adapt.traces.store import disk
from adapt.traces.store.trace import BLOCK_ROWS, ROW_GROUP_ROWS

Positions: TypeAlias = NDArray[np.int64]
"""A position in each run; shape (runs,)."""

PROBES = 16
"""Rows of each run that one round of narrowing looks at."""

FEW = 1 << 14
"""Rows that are sorted rather than narrowed."""


def cut(runs: Sequence[Run], rank: int, low: Positions, high: Positions) -> Positions:
    """Cuts of each run at a rank.

    The rows before the cuts are the first `rank` of all.

    Args:
        low, high: Bounds of the cuts; all rows before `low` are among the first, none from `high` on.
    """
    while rank < high.sum() and high.sum() - low.sum() > FEW:
        narrowed = _narrowed(runs, rank, low, high)
        if np.array_equal(narrowed[0], low) and np.array_equal(narrowed[1], high):
            break
        low, high = narrowed
    if rank >= high.sum():
        return high
    places = [np.arange(first, end) for first, end in zip(low.tolist(), high.tolist(), strict=True)]
    return _before(runs, _ordered(runs, places)[0][:, rank - int(low.sum())], low, high)


def _narrowed(runs: Sequence[Run], rank: int, low: Positions, high: Positions) -> tuple[Positions, Positions]:
    """Closer bounds, found from some rows of each run."""
    places = [_probes(first, end) for first, end in zip(low.tolist(), high.tolist(), strict=True)]
    probes, whose = _ordered(runs, places)
    weights = (high - low) / np.maximum([len(rows) for rows in places], 1)
    # about how many rows are before each probe, and by how many that may be wrong
    before = np.cumsum(weights[whose]) - weights[whose] / 2
    slack = np.sqrt((weights**2).sum()) * 2
    wanted = rank - low.sum()
    under, over = np.searchsorted(before, wanted - slack) - 1, np.searchsorted(before, wanted + slack)
    if under >= 0:
        found = _before(runs, probes[:, under], low, high)
        low, high = (found, high) if found.sum() <= rank else (low, found)
    if over < probes.shape[1]:
        found = _before(runs, probes[:, over], low, high)
        low, high = (low, found) if found.sum() >= rank else (found, high)
    return low, high


def _probes(low: int, high: int) -> Positions:
    """Some rows of a range, those of the index if it is long."""
    width = high - low
    if width > 2 * INDEX_ROWS:
        return np.arange(-(-low // INDEX_ROWS) * INDEX_ROWS, high, INDEX_ROWS)
    count = min(PROBES, width)
    return low + width * (2 * np.arange(count) + 1) // (2 * max(count, 1))


def _ordered(runs: Sequence[Run], places: Sequence[Positions]) -> tuple[NDArray[np.int64], Positions]:
    """Time, file and line of some rows of each run in order, and the run of each; shapes (3, rows), (rows,)."""
    asked = [(at, run, rows) for at, (run, rows) in enumerate(zip(runs, places, strict=True)) if len(rows)]
    keys = np.concatenate([_order_at(run, rows) for _, run, rows in asked], axis=1)
    whose = np.repeat([at for at, _, _ in asked], [len(rows) for _, _, rows in asked])
    order = np.lexsort(keys[::-1])
    return keys[:, order], whose[order]


def _order_at(run: Run, rows: Positions) -> NDArray[np.int64]:
    """Time, file and line of some rows; shape (3, rows)."""
    indexed = not (rows % INDEX_ROWS).any()
    order, at = (run.index, rows // INDEX_ROWS) if indexed else (run.order, rows)
    return np.stack([np.int64(column[at]) for column in order])


def _before(runs: Sequence[Run], place: NDArray[np.int64], low: Positions, high: Positions) -> Positions:
    bounds = zip(runs, low.tolist(), high.tolist(), strict=True)
    return np.array([run.before(place.tolist(), first, end) for run, first, end in bounds], np.int64)


def merge_runs(
    spark: SparkSession, runs: Sequence[Run], schema: pa.Schema, folder: Path, progress: Progress
) -> Profile:
    """Write all runs as parts of `BLOCK_ROWS`, and profile them.

    Args:
        schema: Schema of the trace.
    """
    rows = sum(len(run.rows) for run in runs)
    times = [run.order[0] for run in runs]
    span_us = (min(int(each[0]) for each in times), max(int(each[-1]) for each in times))
    profiler = Profiler.over(span_us, rows, schema)
    paths = [run.path for run in runs]

    def merge(part: int) -> Iterator[pa.RecordBatch]:
        first, end = part * BLOCK_ROWS, min(rows, (part + 1) * BLOCK_ROWS)
        groups = _merged([Run(path) for path in paths], first, end, schema)
        with disk.complete_file(folder / part_name(part), attempt_id()) as path, part_writer(schema, path) as writer:

            def written() -> Iterator[pa.RecordBatch]:
                for group in groups:
                    writer.write_batch(group)
                    yield group

            told = profiler.as_row(part, first, written())
        yield told

    with spark_failures("sorting by time"), watched(spark, "sorting by time", progress):
        blocks = -(-rows // BLOCK_ROWS)
        profile = profiler.reduced(in_tasks(spark, shared_out(spark, blocks), merge, TOLD), blocks)
        remove_unfinished(folder)
        return profile


def _merged(runs: Sequence[Run], first: int, end: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows from rank `first` to `end` of all runs, a row group at a time."""
    whole = np.array([len(run.rows) for run in runs], np.int64)
    low = cut(runs, first, np.zeros(len(runs), np.int64), whole)
    last = cut(runs, end, low, whole)
    for rank in range(first, end, ROW_GROUP_ROWS):
        high = cut(runs, min(end, rank + ROW_GROUP_ROWS), low, last)
        yield _in_order(runs, low, high).select(schema.names)
        low = high


def _in_order(runs: Sequence[Run], low: Positions, high: Positions) -> pa.RecordBatch:
    """The rows of a range of each run, in order."""
    ranges = zip(runs, low.tolist(), high.tolist(), strict=True)
    taken = [(run, first, end - first) for run, first, end in ranges if first < end]
    rows = pa.concat_batches([run.rows.slice(first, count) for run, first, count in taken])
    times = rows.column("ts").view(pa.int64()).to_numpy()
    if any(run.mixed for run, _, _ in taken):
        order = np.lexsort((*(rows.column(name).to_numpy() for name in reversed(PLACES)), times))
    else:
        order = rising(times)  # the runs are in the order of the source
    return rows.take(pa.array(order))
