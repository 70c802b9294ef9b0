"""Parts of an artefact: their names and their writers."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.traces.spark.lazy import DataFrame
from adapt.traces.spark.runner import attempt_id
from adapt.traces.spark.session import Batches, carrying, spark_failures
from adapt.traces.store import disk
from adapt.traces.store.trace import ROW_GROUP_ROWS

LARGEST_DICTIONARY = 64 << 20
"""Largest dictionary of a text column in bytes; further values of a row group are written plainly."""


def part_name(number: int) -> str:
    """File name of a part."""
    return f"part-{number:05d}.parquet"


def remove_unfinished(folder: Path) -> None:
    """Remove the parts of task attempts that were ended."""
    for left in folder.glob(f"_{part_name(0).replace('00000', '*')}*"):
        disk.remove_tree(left)


def write_in_tasks(
    rows: DataFrame, folder: Path, writer: Callable[[pa.Schema, Path], pq.ParquetWriter], doing: str
) -> int:
    """Write partitions as parts in their tasks; gives the number of rows."""

    def write(batches: Batches) -> Batches:
        yield pa.RecordBatch.from_pydict({"rows": [write_part(batches, folder, writer)]})

    with spark_failures(doing):
        return sum(int(row[0]) for row in rows.mapInArrow(carrying(write), "rows bigint").collect())


def write_part(batches: Batches, folder: Path, writer: Callable[[pa.Schema, Path], pq.ParquetWriter]) -> int:
    """Write the part of this task, if it has rows.

    Returns:
        Number of rows.
    """
    from pyspark import TaskContext

    first, count, held = next(batches, None), 0, []
    if first is None:
        return 0
    task = TaskContext.get()
    part = folder / part_name(0 if task is None else task.partitionId())
    with disk.complete_file(part, attempt_id()) as path, writer(first.schema, path) as opened:
        for batch in chain([first], batches):
            held.append(batch)
            if sum(map(len, held)) >= ROW_GROUP_ROWS:
                count += _write_group(opened, held)
        return count + _write_group(opened, held)


def _write_group(opened: pq.ParquetWriter, held: list[pa.RecordBatch]) -> int:
    """Write the held rows, and hold no more."""
    rows = pa.Table.from_batches(held) if held else None
    held.clear()
    if rows is None:
        return 0
    opened.write_table(rows, ROW_GROUP_ROWS)
    return int(rows.num_rows)


def plain_writer(schema: pa.Schema, path: Path) -> pq.ParquetWriter:
    """Writer of a small table, as Spark would write it."""
    return pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True, store_schema=False)


def part_writer(schema: pa.Schema, path: Path) -> pq.ParquetWriter:
    """Writer of a part, as Spark would write it.

    Each call writes a row group. Dictionary-encoded columns are written as their values.
    """
    fixed = [field.name for field in schema if pa.types.is_primitive(field.type)]
    texts = [name for name in schema.names if name not in fixed]
    return pq.ParquetWriter(
        path,
        schema,
        # packed differences of random times do not compress further
        compression={name: "none" if name == "ts" else "zstd" for name in schema.names},
        write_page_checksum=True,
        use_dictionary=texts,
        dictionary_pagesize_limit=LARGEST_DICTIONARY,
        column_encoding={"ts": "DELTA_BINARY_PACKED"},  # rising times cost little so
        write_statistics=fixed,  # each group has small and large keys
        store_schema=False,  # would read dictionaries back as such
    )
