"""Data frames as source files: kept as Parquet while they are read.

Arrow's stream protocol (`__arrow_c_stream__`) reads pandas, polars, Arrow and DuckDB without importing their libraries.
Rows keep the order in which they arrive. A Spark DataFrame has none: its rows are sorted by their columns, from left to
right, of those that are read.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.traces.sources.reading.files import Container, SourceFile
from adapt.traces.sources.reading.table_files import is_uuid, quoted, uuid_texts
from adapt.traces.sources.tables import Query
from adapt.traces.spark.lazy import F
from adapt.traces.spark.session import spark_failures

BATCH_ROWS = 1 << 17
"""Rows that are held in memory at a time."""

_NOT_IN_PARQUET = re.compile("interval|void|variant")
_UNSORTABLE = re.compile("map<")


def is_spark_frame(value: object) -> bool:
    """Whether it is a Spark DataFrame."""
    return type(value).__module__.startswith("pyspark.sql") and type(value).__name__ == "DataFrame"


def is_frame(value: object) -> bool:
    """Whether it is a data frame, an Arrow stream or a query."""
    arrow = ("__arrow_c_stream__", "__arrow_c_array__", "scanner")
    return is_spark_frame(value) or isinstance(value, Query) or any(hasattr(value, name) for name in arrow)


def frame_name(frame: object) -> str:
    """The name of a frame, such as pandas.DataFrame.

    Messages use it, and it is `_path` of the rows.
    """
    kind = type(frame)
    return (
        frame.name if isinstance(frame, Query) else f"{kind.__module__.lstrip('_').partition('.')[0]}.{kind.__name__}"
    )


def frame_opened(frame: Any) -> Any:
    """A frame as a stream, a dataset or a Spark DataFrame."""
    return frame if is_spark_frame(frame) or hasattr(frame, "scanner") else frame_reader(frame)


def frame_schema(frame: Any) -> pa.Schema:
    """Columns that can be kept, with the types they are kept as."""
    if is_spark_frame(frame):
        from pyspark.sql.pandas.types import to_arrow_schema

        kept = [field.name for field in frame.schema if not _NOT_IN_PARQUET.search(field.dataType.simpleString())]
        return to_arrow_schema(frame.select(*map(quoted, kept)).schema, timezone="UTC")
    fields = (pa.field(field.name, _kept_type(field.type)) for field in frame_opened(frame).schema)
    return pa.schema([field for field in fields if _is_storable(field)])


def keep_frame(frame: Any, name: str, folder: Path, columns: Sequence[str]) -> list[SourceFile]:
    """Write columns of a frame as source files in a new folder.

    Args:
        frame: As `frame_opened` gives it.
        name: The name of the frame.
    """
    if not is_spark_frame(frame):
        folder.mkdir()
        _keep_stream(frame_reader(frame, columns), name, folder / "0.parquet", columns)
    else:
        kinds = dict(frame.dtypes)
        sortable = [
            F.to_json(F.struct(quoted(each))) if _UNSORTABLE.search(kinds[each]) else quoted(each) for each in columns
        ]
        with spark_failures(f"reading {name}"):
            frame.select(*map(quoted, columns)).sort(*sortable).write.parquet(str(folder))
    files, before = [], 0
    for path in sorted(folder.glob("*.parquet")):
        files.append(SourceFile(path.absolute(), name, Container.PLAIN, path.stat().st_size, rows_before=before))
        before += pq.read_metadata(path).num_rows
    return files


def _keep_stream(reader: pa.RecordBatchReader, name: str, path: Path, columns: Sequence[str]) -> None:
    """Write a stream of record batches as one file, a row group at a time."""
    places = [reader.schema.get_field_index(name) for name in columns]
    schema = pa.schema([pa.field(reader.schema.names[at], _kept_type(reader.schema.types[at])) for at in places])
    with pq.ParquetWriter(path, schema, compression="snappy", store_schema=False) as writer:
        for rows in _gathered(reader, name):
            kept = [
                uuid_texts(rows.column(at))
                if is_uuid(rows.schema.types[at])
                else rows.column(at).cast(kind, safe=False)
                for at, kind in zip(places, schema.types, strict=True)
            ]
            writer.write_table(pa.table(kept, schema=schema), BATCH_ROWS)


def _gathered(reader: pa.RecordBatchReader, name: str) -> Iterator[pa.Table]:
    """The rows of a reader in tables of `BATCH_ROWS` or more; a larger batch is a table of its own."""
    held: list[pa.RecordBatch] = []
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        except pa.ArrowException as error:
            raise BadInput(f"{name}: cannot be read to its end: {str(error).splitlines()[0]}") from error
        held.append(batch)
        if sum(each.num_rows for each in held) >= BATCH_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    yield pa.Table.from_batches(held, reader.schema)


def frame_reader(frame: Any, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """The rows of a frame as a stream of record batches."""
    try:
        if isinstance(frame, pa.RecordBatchReader):
            return frame
        if hasattr(frame, "scanner"):  # a dataset, which need not read other columns
            return frame.scanner(columns=None if columns is None else list(columns)).to_reader()
        if not hasattr(frame, "__arrow_c_stream__"):
            batch = pa.record_batch(frame)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
        return pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowException as error:
        raise BadInput(f"{frame_name(frame)}: {' '.join(map(str, error.args))}") from error


def _kept_type(kind: pa.DataType) -> pa.DataType:
    """The type that Parquet keeps and its reader takes: plain values."""
    if is_uuid(kind):
        return pa.string()
    if isinstance(kind, pa.BaseExtensionType):
        return _kept_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _kept_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns" if kind.unit == "ns" else "us", kind.tz)
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_kept_type(field.type)) for field in kind.fields])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_kept_type(kind.value_type)))
    return kind


def _is_storable(field: pa.Field) -> bool:
    """Whether Parquet has a type for it."""
    try:
        pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
    except pa.ArrowException:
        return False
    return True
