"""Parquet sources: columns keep their types, rows are numbered within their file."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.spark.lazy import DataFrame, F

_UNKNOWN = ("TIME", "FLOAT16", "UUID")
"""Logical types of Parquet that Spark has none for."""

_MOST_DIGITS = 38
"""Of Spark's decimal numbers."""


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Parquet, whose rows Spark numbers itself."""

    name: ClassVar[str] = "Parquet"

    def schema_of(self, file: SourceFile) -> pa.Schema:
        """The columns of a file."""
        schema = pq.read_schema(file.path)
        _check_types(file)
        return schema

    def rows_of(self, file: SourceFile) -> int:
        """How many rows a file has."""
        return int(pq.read_metadata(file.path).num_rows)

    def numbered(self, rows: DataFrame) -> DataFrame:
        """The rows with their number in their file."""
        return rows.withColumn("_row", F.col("_metadata.row_index") + 1)


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
