"""Merge of sorted runs into the parts of a trace."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from adapt.traces.ingest.profile import TOLD, Profile, Profiler
from adapt.traces.ingest.runs.cutting import Positions, cut
from adapt.traces.ingest.runs.run_files import Run, rising
from adapt.traces.ingest.runs.sieve import PLACES
from adapt.traces.parts import part_name, part_writer, remove_unfinished
from adapt.traces.spark.lazy import SparkSession
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.runner import attempt_id, in_tasks, shared_out
from adapt.traces.spark.session import spark_failures
from adapt.traces.store import disk
from adapt.traces.store.trace import BLOCK_ROWS, ROW_GROUP_ROWS


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
