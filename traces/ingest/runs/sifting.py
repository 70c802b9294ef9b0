"""Sifting of rows into sorted runs in Spark tasks.

The rows that are not plain become runs once Spark has mapped them.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from adapt.traces.ingest.runs.run_files import MIXED, RunWriter, runs_of
from adapt.traces.ingest.runs.sieve import Sieve, with_places
from adapt.traces.ingest.time_sort import ORDER, Stock, take_stock
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.sources.source import Sift
from adapt.traces.spark.lazy import DataFrame, F
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import Batches, carrying, spark_failures
from adapt.traces.spark.spark_tasks import attempt_id


def sifting(sieve: Sieve, folder: Path) -> Sift:
    """Task work that puts plain rows into runs of a folder."""

    def sift(task: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runs = RunWriter(folder, f"task-{task:06d}", attempt_id())
        for batch in batches:
            plain, others = sieve.sifted(batch)
            runs.add(plain)
            if len(others):
                yield others
        runs.close()

    return sift


def sifted_stock(rows: DataFrame, sieve: Sieve, left: int, folder: Path, progress: Progress) -> Stock:
    """Stock of all rows, once the others are runs too.

    Args:
        rows: The other rows: columns of the trace, with `_file`, `_line` and `_reason`.
        left: Number of the other rows.
        folder: Folder of the runs.
    """
    plain = sum(len(run.rows) for run in runs_of(folder))
    others = take_stock(rows, 1, progress) if left else Stock(0, {}, ())
    if others.kept:
        with spark_failures("sorting by time"), watched(rows.sparkSession, "sorting by time", progress):
            _write_others(rows, with_places(sieve.schema), folder)
    return replace(others, kept=plain + others.kept)


def _write_others(rows: DataFrame, schema: pa.Schema, folder: Path) -> None:
    """Write the good rows of a table as runs in a folder."""

    def write(batches: Batches) -> Batches:
        runs: RunWriter | None = None
        for batch in batches:
            if runs is None:
                runs = RunWriter(folder, f"{MIXED}-{batch.column('part')[0].as_py():06d}", attempt_id())
            columns = [batch.column(name).cast(kind) for name, kind in zip(schema.names, schema.types, strict=True)]
            runs.add(pa.RecordBatch.from_arrays(columns, schema=schema))
        if runs is not None:
            runs.close()
        yield from ()

    kept = rows.where("_reason is null").sortWithinPartitions(*ORDER)
    kept = kept.select(F.spark_partition_id().alias("part"), *map(quoted, schema.names))
    kept.mapInArrow(carrying(write), "none int").collect()
