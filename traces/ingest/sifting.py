"""Sifting of rows into sorted runs in Spark tasks.

The rows that are not plain become runs once Spark has mapped them, in one job: no expression is evaluated twice.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapt.traces.ingest.runs import Run, RunWriter, runs_of
from adapt.traces.ingest.sieve import PLACES, TIME, Sieve, with_places
from adapt.traces.ingest.time_sort import Stock
from adapt.traces.sources.reading.blocks import PLACE, reader_schema
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.sources.source import Sift
from adapt.traces.spark.lazy import DataFrame
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.runner import attempt_id
from adapt.traces.spark.session import Batches, carrying, literal_path, spark_failures

_REFUSED = reader_schema([], {})

TOLD = pa.schema([("what", pa.string()), ("file", pa.string()), ("rows", pa.int64())])
"""Schema of what tasks tell: a run, refused rows or a reason, its file or words, and its rows."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """Rows of a source as runs."""

    stock: Stock  # their numbers; parts have no bounds
    runs: list[Run]  # the good rows
    refused: (
        Any  # as a data frame, or without Spark as a table, the rejected rows: `_file`, `_line`, `_reason`, `_text`
    )
    schema: pa.Schema  # schema of the trace


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


def schema_of(rows: pa.Schema) -> pa.Schema | None:
    """Schema of the trace; None if only Spark can write it.

    Args:
        rows: Schema of the mapped rows.
    """
    fields = []
    for field in rows:
        kind = field.type
        if pa.types.is_duration(kind) or pa.types.is_interval(kind) or pa.types.is_null(kind):
            return None
        zoned = pa.types.is_timestamp(kind) and kind.tz is not None
        fields.append((field.name, TIME if zoned else kind))
    return pa.schema(fields)


def sifted(rows: DataFrame, schema: pa.Schema, left: int, folder: Path, progress: Progress) -> Sifted:
    """The rows of a source as runs.

    Args:
        rows: Rows that are not in runs yet: columns of the trace, with those of `PLACE`.
        schema: Schema of the trace.
        left: Number of those rows.
        folder: Folder of the runs so far.
    """
    runs, refused = runs_of(folder), rows.select(*PLACE).where("false")
    kept, reasons = sum(len(run.rows) for run in runs), Counter[str]()
    if left:
        with spark_failures("reading the source"), watched(rows.sparkSession, "mapping", progress):
            told = _as_runs(rows, schema, folder).collect()
        # only those of the attempts that Spark counts
        runs += [Run(folder / row["file"]) for row in told if row["what"] == "run"]
        kept += sum(row["rows"] for row in told if row["what"] == "run")
        for row in told:
            if row["what"] == "reason":
                reasons[row["file"]] += row["rows"]
        aside = [literal_path(folder / row["file"]) for row in told if row["what"] == "refused"]
        if aside:
            refused = rows.sparkSession.read.schema(refused.schema).parquet(*aside)
    return Sifted(Stock(kept, dict(reasons), ()), runs, refused, schema)


def _as_runs(rows: DataFrame, schema: pa.Schema, folder: Path) -> DataFrame:
    """What tasks did with their rows, as `TOLD`."""
    kinds = with_places(schema)

    def write(batches: Batches) -> Batches:
        attempt = attempt_id()
        runs, reasons = RunWriter(folder, f"{attempt:012d}", attempt, mixed=True), Counter[str]()
        aside = f"refused-{attempt:012d}.parquet"
        with ExitStack() as opened:
            refused: pq.ParquetWriter | None = None
            for batch in batches:
                good = batch.column("_reason").is_null()
                kept = batch.filter(good)
                runs.add(kept.select(kinds.names).cast(kinds))
                if len(kept) < len(batch):
                    bad = batch.filter(pc.invert(good)).select(_REFUSED.names).cast(_REFUSED)
                    refused = refused or opened.enter_context(pq.ParquetWriter(folder / aside, _REFUSED))
                    refused.write_batch(bad)
                    for count in pc.value_counts(bad.column("_reason")):
                        reasons[count["values"].as_py()] += count["counts"].as_py()
        runs.close()
        told = [("run", path.name, len(Run(path).rows)) for path in runs.written]
        told += [("reason", reason, count) for reason, count in reasons.items()]
        told += [("refused", aside, sum(reasons.values()))] if reasons else []
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([row[at] for row in told], kind)
                for at, kind in enumerate((pa.string(), pa.string(), pa.int64()))
            ],
            names=["what", "file", "rows"],
        )

    names = dict.fromkeys([*PLACES, "_reason", "_text", *schema.names])
    return rows.select(*map(quoted, names)).mapInArrow(carrying(write), "what string, file string, rows bigint")
