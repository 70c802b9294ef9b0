"""Parquet sources, with typed columns."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import is_stored
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.table_files import marked

_KNOWN = frozenset(
    (
        "NONE",
        "STRING",
        "ENUM",
        "JSON",
        "BSON",
        "INT",
        "DECIMAL",
        "DATE",
        "TIMESTAMP",
        "LIST",
        "MAP",
        "UNKNOWN",
        "NULL",
        "UUID",
    )
)
"""Logical types of Parquet that are read; without TIME and FLOAT16."""

_INSTANT = pa.timestamp("us", "UTC")
"""What Spark makes of INT96."""

_MOST_DIGITS = 38
"""Digits of Spark's decimal numbers."""


_SIGNATURE = 28
"""Bytes behind the readable footer of a file with encrypted columns: a nonce and a tag."""


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Parquet."""

    name: ClassVar[str] = "Parquet"

    def schema_of(self, file: SourceFile) -> pa.Schema:
        """Columns of a file."""
        metadata = _metadata(file)
        odd = _unreadable(metadata.schema)
        columns = map(metadata.schema.column, range(len(metadata.schema)))
        instants = {column.path for column in columns if column.physical_type == "INT96"}
        fields = metadata.schema.to_arrow_schema().remove_metadata()
        kept = (field.with_type(_INSTANT) if field.name in instants else field for field in fields)
        return pa.schema([marked(field, odd.get(field.name, "")) for field in kept])

    def pieces_of(self, file: SourceFile) -> list[int]:
        """Rows of each row group of a file."""
        metadata = _metadata(file)
        return [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]

    def read_pieces(self, file: SourceFile, pieces: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of row groups; neighboring chunks are one request."""
        opened = pq.ParquetFile(
            arrow_source(file.path), metadata=_metadata(file), pre_buffer=True, coerce_int96_timestamp_unit="us"
        )
        for piece in pieces:
            yield opened.read_row_group(piece, columns=list(columns), use_threads=False)


def _metadata(file: SourceFile) -> pq.FileMetaData:
    """The footer of a file, which is read once."""
    if is_stored(file.path):
        return _metadata_of(file, file.path.found().version)
    status = file.path.stat()
    return _metadata_of(file, f"{status.st_mtime_ns} {status.st_size}")


@lru_cache(maxsize=4096)
def _metadata_of(file: SourceFile, version: str) -> pq.FileMetaData:  # noqa: ARG001 - of this version
    metadata = pq.read_metadata(arrow_source(file.path))
    with file.path.open("rb", buffering=0) as opened:
        opened.seek(-8, os.SEEK_END)
        length = int.from_bytes(opened.read(4), "little")
    if length == metadata.serialized_size + _SIGNATURE:  # Arrow ends the process where it meets such a column
        raise BadInput(f"{file.label} is a Parquet file with encrypted columns; decrypt it first")
    return metadata


def _unreadable(schema: pq.ParquetSchema) -> dict[str, str]:
    """Types of the columns that Spark cannot read, by name."""
    found: dict[str, str] = {}
    names = schema.to_arrow_schema().names
    for column in map(schema.column, range(len(schema))):
        kind = column.logical_type.type
        nested = kind == "UUID" and column.path not in names
        if kind not in _KNOWN or nested or (kind == "DECIMAL" and column.precision > _MOST_DIGITS):
            shown = f"{kind} of {column.precision} digits" if kind == "DECIMAL" else kind
            name = next(each for each in names if column.path == each or column.path.startswith(f"{each}."))
            found.setdefault(name, shown if name == column.path else f"{shown} in {column.path}")
    return found
