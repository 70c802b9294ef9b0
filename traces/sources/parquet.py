"""Parquet sources, through Spark's own reader: columns keep their types, rows are numbered within their file."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.traces.session import literal_path, spark_failures
from adapt.traces.sources.blocks import PATH
from adapt.traces.sources.files import SourceFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_UNKNOWN = ("TIME", "FLOAT16", "UUID")
"""Logical types of Parquet that Spark has none for."""

_MOST_DIGITS = 38
"""Of Spark's decimal numbers."""


def parquet_columns(spark: "SparkSession", files: Sequence[SourceFile]) -> tuple[str, ...]:
    """The columns of the files.

    Raises:
        BadInput: one of them is no Parquet file, or has columns of another name or type than the first.
    """
    first: pa.Schema | None = None
    for file in files:
        try:
            schema = pq.read_schema(file.path).remove_metadata()
            _check_types(file)
        except (OSError, pa.ArrowException) as error:
            raise BadInput(f"{file.label} is truncated or no Parquet file ({str(error).splitlines()[0]})") from error
        if first is None:
            first = schema
        elif not schema.equals(first):
            raise BadInput(
                f"{file.label} has other columns than {files[0].label}; ingest files of different columns apart"
            )
        if ":" in file.path:
            raise BadInput(f"{file.path}: Spark reads no Parquet file with a colon in its path; rename it")
    with spark_failures("reading the source"):
        return tuple(_read(spark, files).columns)


def _check_types(file: SourceFile) -> None:
    """Do nothing unless a file has a column that Spark cannot so much as pass over.

    Raises:
        BadInput: it has one.
    """
    schema = pq.read_metadata(file.path).schema
    for column in map(schema.column, range(len(schema))):
        kind = column.logical_type.type
        if kind in _UNKNOWN or (kind == "DECIMAL" and column.precision > _MOST_DIGITS):
            shown = f"{kind} of {column.precision} digits" if kind == "DECIMAL" else kind
            raise BadInput(
                f"{file.label}: column {column.path!r} is a {shown}, which Spark does not read; write the file without"
                " it, or make it text or a number"
            )


def parquet_rows(files: Sequence[SourceFile]) -> int:
    """How many rows the files have, by their footers."""
    return sum(pq.read_metadata(file.path).num_rows for file in files)


def read_parquet(
    spark: "SparkSession", files: Sequence[SourceFile], wanted: Sequence[str], *, with_text: bool = False
) -> "DataFrame":
    """All rows with their place, what is wanted, and `_path`; `_text` holds a row as JSON if asked for."""
    from pyspark.sql import functions as F

    rows = _read(spark, files)
    columns = [quoted(name) for name in wanted if name != PATH]
    names = spark.createDataFrame(
        [(at, _absolute(file), file.label) for at, file in enumerate(files)], "_file int, _where string, _path string"
    )
    # the path of a file URI, %XX taken back; a plus sign is itself
    where = F.url_decode(F.replace(F.regexp_replace("_metadata.file_path", "^file:/+", "/"), F.lit("+"), F.lit("%2B")))
    text = F.to_json(F.struct("*")) if with_text else F.lit(None).cast("string")
    return (
        rows.select(
            where.alias("_where"),
            (F.col("_metadata.row_index") + 1).alias("_line"),
            F.lit(None).cast("string").alias("_reason"),
            text.alias("_text"),
            *columns,
        )
        .join(F.broadcast(names), "_where", "left")
        .select(
            # no row may get lost because its file is not found by name
            F.coalesce("_file", F.raise_error(F.concat(F.lit("no source file is "), "_where")).cast("int")).alias(
                "_file"
            ),
            "_line",
            "_reason",
            "_text",
            *columns,
            PATH,
        )
    )


def quoted(name: str) -> "Column":
    """The column of exactly that name, whatever characters it has."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def _read(spark: "SparkSession", files: Sequence[SourceFile]) -> "DataFrame":
    """The files as Spark reads them; their paths are names, not patterns."""
    # times in nanoseconds, which Spark has no type for, become whole numbers
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    return spark.read.parquet(*(literal_path(file.path) for file in files))


def _absolute(file: SourceFile) -> str:
    return os.path.abspath(file.path)
