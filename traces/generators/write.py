"""Write a synthetic stream as a trace."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from adapt.core.keys.key_coder import coded_numbers
from adapt.core.reading import Rejects
from adapt.traces.ingest.ingest import Ingested
from adapt.traces.ingest.profile import TOLD, Profiler, settle
from adapt.traces.parts import part_name, part_writer, remove_unfinished
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.runner import BlockRows, SparkRunner, attempt_id, runner_for
from adapt.traces.spark.session import Spark
from adapt.traces.store import disk
from adapt.traces.store.atomic import check_folder_free, whole_folder
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.trace import BLOCK_ROWS, ROW_GROUP_ROWS, Trace, open_trace

MOST_ROWS = 100_000 * BLOCK_ROWS
"""Limit of part names with five digits, since a part holds one block."""


class GeneratedStream(Protocol):
    """A synthetic stream; may be sent to Spark tasks, so plain data."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    def block(self, index: int) -> pa.RecordBatch:
        """Rows from index * BLOCK_ROWS on, at most `BLOCK_ROWS`, in time order.

        They do not depend on which other blocks are made, or where, and none is earlier than a row of an earlier block.
        Keys may be dictionary-encoded, which saves spelling and hashing each row's.
        """


def write_generated(
    stream: GeneratedStream,
    out: Path,
    made: Provenance,
    *,
    force: bool = False,
    spark_options: Spark = None,
    tasks: Sequence[Sequence[int]] | None = None,
    progress: Progress,
) -> Trace:
    """Write a synthetic stream as a trace, one part per block.

    Args:
        tasks: Blocks of each Spark task; they do not affect the trace.
    """
    check_folder_free(out, force=force)
    runner = (SparkRunner if tasks else runner_for)(stream.rows, spark_options, progress)
    blocks = -(-stream.rows // BLOCK_ROWS)
    with whole_folder(out, force=force) as folder:

        def ends_of(last: int) -> Iterator[pa.RecordBatch]:
            # on the runner too, since the tables of a stream may be large
            rows = stream.block((blocks - 1) * last)
            times = rows.column("ts").cast(pa.int64())
            schema = pa.array([_written_schema(rows.schema).serialize().to_pybytes()])
            yield pa.RecordBatch.from_pydict({"schema": schema, "first": times[:1], "last": times[-1:]})

        def write(index: int) -> Iterator[pa.RecordBatch]:
            rows = stream.block(index)
            with disk.complete_file(folder / part_name(index), attempt_id()) as path:
                write_part(rows, path)
            # in row groups, as they are read back
            groups = (rows.slice(start, ROW_GROUP_ROWS) for start in range(0, len(rows), ROW_GROUP_ROWS))
            yield profiler.as_row(index, index * BLOCK_ROWS, groups)

        kinds = "schema binary, first bigint, last bigint"
        ends = runner.rows(BlockRows("generating", min(blocks, 2), ends_of, kinds)).to_pylist()
        span_us = (min(row["first"] for row in ends), max(row["last"] for row in ends))
        profiler = Profiler.over(span_us, stream.rows, pa.ipc.read_schema(pa.py_buffer(ends[0]["schema"])))
        told = runner.rows(BlockRows("generating", blocks, write, TOLD, tasks=tasks))
        remove_unfinished(folder)
        profile = profiler.collected(told)
        settle(folder, replace(made, runner=runner.name.value), Rejects(), lambda _: profile)
    return open_trace(out)


def write_part(rows: pa.RecordBatch, path: Path) -> None:
    """Write a part of a trace as Spark would."""
    with part_writer(rows.schema, path) as writer:
        for start in range(0, len(rows), ROW_GROUP_ROWS):
            writer.write_table(pa.Table.from_batches([_own_dictionary(rows.slice(start, ROW_GROUP_ROWS))]))


def _own_dictionary(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows whose dictionary of keys, if any, holds only their own keys."""
    at, keys = rows.schema.get_field_index("key"), rows.column("key")
    if not pa.types.is_dictionary(keys.type):
        return rows
    used, codes = coded_numbers(keys.indices.to_numpy().astype(np.int64))
    own = pa.DictionaryArray.from_arrays(pa.array(codes), keys.dictionary.take(pa.array(used)))
    return rows.set_column(at, rows.schema.field(at), own)


def _written_schema(schema: pa.Schema) -> pa.Schema:
    """Schema of the rows once written, with dictionaries as their values."""
    kinds = [(field.name, field.type) for field in schema]
    return pa.schema([(name, kind.value_type if pa.types.is_dictionary(kind) else kind) for name, kind in kinds])


class NamedStream(GeneratedStream, Protocol):
    """A synthetic stream with its seed and parameters."""

    @property
    def seed(self) -> int:
        """Random seed."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Name of the generator, and all parameters that determine the rows."""


def generate(
    stream: NamedStream,
    out: Path,
    *,
    force: bool = False,
    spark_options: Spark = None,
    command: str = "adapt.traces.generators.write.generate",
    progress: Progress = silent,
) -> Ingested:
    """Write a synthetic stream, such as `zipf_stream(rows=1000)`, as a trace.

    The rows depend only on the stream, not on the number of tasks or machines.
    """
    made = Provenance(command, stream.parameters, seed=stream.seed)
    trace = write_generated(stream, out, made, force=force, spark_options=spark_options, progress=progress)
    return Ingested(trace, Rejects(), ())
