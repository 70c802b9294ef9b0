"""Data frames, tables and queries as sources."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.traces.sources.reading.files import Container, SourceFile
from adapt.traces.sources.reading.records import quoted_name
from adapt.traces.sources.reading.table_files import is_uuid, quoted, uuid_texts
from adapt.traces.spark.lazy import DataFrame, F, SparkSession
from adapt.traces.spark.session import first_sentence, spark_failures

CURRENT: Mapping[str, str] = {
    "iceberg": "SELECT snapshot_id FROM {}.refs WHERE name = 'main'",  # its history is ordered by clocks of writers
    "delta": "DESCRIBE HISTORY {} LIMIT 1",
}
"""By format, the query whose first cell is the current version of a table."""


def current_version(spark: SparkSession, table: str) -> str:
    """The current version of a table, for `VERSION AS OF`.

    Empty where its format has no versions, it has no rows yet, or it is a branch or another view of a table.
    """
    from pyspark.errors import AnalysisException

    query, row = CURRENT.get(_format(spark, table)), None
    with suppress(AnalysisException):
        row = None if query is None else spark.sql(query.format(table)).first()
    return "" if row is None else str(row[0])


def _format(spark: SparkSession, table: str) -> str:
    """The format of a table; empty for views, and where a catalog does not say."""
    from pyspark.errors import AnalysisException

    with suppress(AnalysisException):  # of a table that is not there, the reader says so
        facts = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
        # the facts follow the columns, of which one may have this name
        return next((str(row["data_type"]).lower() for row in reversed(facts) if row["col_name"] == "Provider"), "")
    return ""


@dataclass(frozen=True, slots=True)
class Query:
    """A table of a catalog, or an SQL query."""

    table: str = ""  # its name, such as `catalog.db.events`; empty for a query
    sql: str = ""  # one query in Spark SQL; empty for a table
    version: str = ""  # the snapshot or version of the table to read; empty for the current one

    @property
    def name(self) -> str:
        """What messages and `_path` call it."""
        return self.table or "query"

    def pinned(self, spark: SparkSession) -> "Query":
        """The same at the current version of its table, if any."""
        if not self.table or self.version:
            return self
        with spark_failures(f"--table {self.table}"):
            return replace(self, version=current_version(spark, self.table))

    def opened(self, spark: SparkSession) -> DataFrame:
        """Its rows; nothing is read yet."""
        from pyspark.errors import AnalysisException, ParseException

        option = f"--table {self.table}" if self.table else "--sql"
        with spark_failures(option):
            try:
                # only a query parses in these brackets
                rows = f"(\n{self.sql.strip().rstrip(';')}\n)"
                if self.version:
                    rows = f"{self.table} VERSION AS OF {self.version}"
                current = self.table and not self.version
                frame = spark.table(self.table) if current else spark.sql(f"SELECT * FROM {rows}")
                names = frame.columns
            except ParseException as error:
                wanted = "a name such as catalog.db.events" if self.table else "one query, such as SELECT"
                raise UsageError(f"{option}: {first_sentence(str(error))}; it takes {wanted}") from error
            except AnalysisException as error:
                told = error.getMessageParameters() or {}
                if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
                    raise _not_there(spark, option, told["relationName"]) from error
                if error.getCondition() == "REQUIRES_SINGLE_PART_NAMESPACE":
                    catalog = _parts(told["identifier"])[0]
                    setting = f"--spark-conf spark.sql.catalog.{catalog}=CLASS"
                    raise BadInput(f"{option}: there is no catalog {catalog}; name its class by {setting}") from error
                raise
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise BadInput(f"{option} has two columns {twice[0]!r}; rename one in --sql with AS")
        return frame


def _parts(quoted: str) -> list[str]:
    """The parts of a name in backticks."""
    return [part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)+)`", quoted)]


def _not_there(spark: SparkSession, option: str, name: str) -> BadInput:
    """That a table is not there, with the tables of its database."""
    from pyspark.errors import AnalysisException

    parts = _parts(name)
    database = ".".join(map(quoted_name, parts[:-1]))
    try:
        known = [row.tableName for row in spark.sql(f"SHOW TABLES{' IN ' if database else ''}{database}").collect()]
    except AnalysisException:
        remedy = "write it as CATALOG.DB.TABLE, and name its catalog by --spark-conf spark.sql.catalog.CATALOG=CLASS"
        return BadInput(f"{option}: there is no table {'.'.join(parts)}, nor a database {database}; {remedy}")
    others = did_you_mean(parts[-1], known) if known else "; write it as DB.TABLE, with its database"
    return BadInput(f"{option}: there is no table {'.'.join(parts)}{others}")


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
