"""Parquet sources, with typed columns and numbered rows."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.spark.lazy import DataFrame, F

_UNKNOWN = ("TIME", "FLOAT16", "UUID")
"""Logical types of Parquet that Spark does not have."""

_MOST_DIGITS = 38
"""Digits of Spark's decimal numbers."""


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Parquet, whose rows Spark numbers itself."""

    name: ClassVar[str] = "Parquet"

    def schema_of(self, file: SourceFile) -> pa.Schema:
        """Columns of a file."""
        schema = pq.read_schema(file.path)
        _check_types(file)
        return schema

    def rows_of(self, file: SourceFile) -> int:
        """Number of rows of a file."""
        return int(pq.read_metadata(file.path).num_rows)

    def numbered(self, rows: DataFrame) -> DataFrame:
        """Rows with their number in the file."""
        return rows.withColumn("_row", F.col("_metadata.row_index") + 1)


def _check_types(file: SourceFile) -> None:
    """Refuse column types that make Spark fail even if the column is not used.

    Raises:
        BadInput: a column has such a type.
    """
    schema = pq.read_metadata(file.path).schema
    for column in map(schema.column, range(len(schema))):
        kind = column.logical_type.type
        if kind in _UNKNOWN or (kind == "DECIMAL" and column.precision > _MOST_DIGITS):
            shown = f"{kind} of {column.precision} digits" if kind == "DECIMAL" else kind
            raise BadInput(
                f"{file.label}: Spark cannot read column {column.path!r} of type {shown}; write it as text or a number,"
                " or omit it"
            )
