"""Parquet sources, with typed columns and numbered rows."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.table_files import marked
from adapt.traces.spark.lazy import DataFrame, F

_KNOWN = frozenset(
    ("NONE", "STRING", "ENUM", "JSON", "BSON", "INT", "DECIMAL", "DATE", "TIMESTAMP", "LIST", "MAP", "UNKNOWN", "NULL")
)
"""Logical types of Parquet that Spark reads; without TIME, FLOAT16 and UUID."""

_INSTANT = pa.timestamp("us", "UTC")
"""What Spark makes of INT96."""

_MOST_DIGITS = 38
"""Digits of Spark's decimal numbers."""


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Parquet, whose rows Spark numbers itself."""

    name: ClassVar[str] = "Parquet"

    def schema_of(self, file: SourceFile) -> pa.Schema:
        """Columns of a file."""
        metadata = pq.read_metadata(file.path)
        odd = _unreadable(metadata.schema)
        columns = map(metadata.schema.column, range(len(metadata.schema)))
        instants = {column.path for column in columns if column.physical_type == "INT96"}
        fields = metadata.schema.to_arrow_schema().remove_metadata()
        kept = (field.with_type(_INSTANT) if field.name in instants else field for field in fields)
        return pa.schema([marked(field, odd.get(field.name, "")) for field in kept])

    def rows_of(self, file: SourceFile) -> int:
        """Number of rows of a file."""
        return int(pq.read_metadata(file.path).num_rows)

    def numbered(self, rows: DataFrame) -> DataFrame:
        """Rows with their number in the file."""
        return rows.withColumn("_row", F.col("_metadata.row_index") + 1)


def _unreadable(schema: pq.ParquetSchema) -> dict[str, str]:
    """Types of the columns that Spark cannot read, by name."""
    found: dict[str, str] = {}
    names = schema.to_arrow_schema().names
    for column in map(schema.column, range(len(schema))):
        kind = column.logical_type.type
        if kind not in _KNOWN or (kind == "DECIMAL" and column.precision > _MOST_DIGITS):
            shown = f"{kind} of {column.precision} digits" if kind == "DECIMAL" else kind
            name = next(each for each in names if column.path == each or column.path.startswith(f"{each}."))
            found.setdefault(name, shown if name == column.path else f"{shown} in {column.path}")
    return found
