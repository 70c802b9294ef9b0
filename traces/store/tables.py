"""Tables on disk: cells as Parquet, titles and units for the manifest."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adapt.core.errors import listed
from adapt.core.metrics import column_now
from adapt.core.table import Cell, Column, Kind, Table
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.read_errors import damaged
from adapt.traces.store.manifest import Manifest


class ColumnHasher:
    """Hashes columns, independent of batches."""

    def __init__(self, names: Sequence[str]) -> None:
        """Hash these columns."""
        self._halves = {name: (hashlib.sha256(), hashlib.sha256()) for name in names}

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows."""
        for name, halves in self._halves.items():
            for half, stream in zip(halves, value_streams(batch.column(name)), strict=True):
                half.update(stream)

    def digest(self) -> str:
        """SHA-256 in hex over all columns so far."""
        halves = (half.digest() for pair in self._halves.values() for half in pair)
        return hashlib.sha256(b"".join(halves)).hexdigest()


def columns_hash(table: pa.Table) -> str:
    """The hash of a table: column names, types and values."""
    return batches_hash(table.schema, table.to_batches())


def batches_hash(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> str:
    """As `columns_hash`, of rows that need not be in memory at once."""
    hasher = ColumnHasher(schema.names)
    for batch in batches:
        hasher.update(batch)
    kinds = json.dumps([[field.name, str(field.type)] for field in schema])
    return hashlib.sha256(f"{kinds}{hasher.digest()}".encode()).hexdigest()


def value_streams(column: pa.Array) -> tuple[memoryview, memoryview]:
    """The values of a column as two byte streams, independent of batches.

    Fixed-width values: one validity byte each, and the values little-endian with null as zero. Text and binary: their
    lengths (-1 for null), and their bytes. Other values are hashed as their text; lists, structs and maps as JSON. The
    streams of a concatenated column are the concatenated streams. Dictionaries are decoded first.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_timestamp(kind):
        column, kind = column.cast(pa.int64()), pa.int64()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        # an unsigned number beyond int64 keeps its bits; the type is hashed separately
        wide = column.cast(pa.float64() if pa.types.is_floating(kind) else pa.int64(), safe=False)
        valid = column.is_valid().cast(pa.uint8())
        return _bytes_of(valid.to_numpy()), _bytes_of(pc.fill_null(wide, 0).to_numpy())
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        column = _as_json(column) if pa.types.is_nested(kind) else column.cast(pa.large_string())
    packed = column.cast(pa.large_binary())
    lengths = _bytes_of(pc.fill_null(pc.binary_length(packed).cast(pa.int64()), -1).to_numpy())
    filled = pc.fill_null(packed, b"") if packed.null_count else packed
    _, offsets, data = filled.buffers()
    if data is None or not len(filled):
        return lengths, memoryview(b"")
    ends = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    return lengths, memoryview(data)[int(ends[0]) : int(ends[-1])]


def _as_json(column: pa.Array) -> pa.Array:
    texts = [None if value is None else json.dumps(value, default=repr) for value in column.to_pylist()]
    return pa.array(texts, pa.large_string())


def _bytes_of(values: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(values).view(np.uint8).data if len(values) else memoryview(b"")


CLOCKED = frozenset({"build_s", "prepared_s", "planned_s"})
"""Columns of measured times; they differ between runs, so content hashes ignore them."""

_TIME = pa.timestamp("us", "UTC")
_REAL = frozenset({Kind.NUMBER, Kind.RATIO, Kind.SHARE, Kind.SECONDS})


def write_table(table: Table, path: Path) -> None:
    """Write the cells as one Parquet file with page checksums."""
    pq.write_table(arrow_of(table), path, compression="zstd", write_page_checksum=True)


def packed(table: pa.Table) -> bytes:
    """Arrow columns as the bytes of a Parquet file with page checksums."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_table(path: Path, facts: Mapping[str, Any]) -> Table:
    """Read a table that was written with these facts.

    Whole numbers in a column of real numbers are read as floats.
    """
    try:
        # pq.read_table would import pandas, which takes longer than the rest.
        with pq.ParquetFile(arrow_source(path), page_checksum_verification=True) as file:
            arrow = file.read()
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error
    if arrow.column_names != [each["name"] for each in facts["columns"]] or arrow.num_rows != facts["rows"]:
        raise damaged(path, f"its {arrow.num_rows:,} rows of {listed(arrow.column_names)} do not match the manifest")
    cells = [_cells(column) for column in arrow.columns]
    return Table(facts["title"], columns_of(facts), tuple(zip(*cells, strict=True)), facts["note"])


def table_facts(table: Table) -> dict[str, Any]:
    """The title, note and columns of a table, for the manifest."""
    columns = [
        {"name": each.name, "kind": each.kind.value, "unit": each.unit, "about": each.about} for each in table.columns
    ]
    return {"title": table.title, "note": table.note, "rows": len(table.rows), "columns": columns}


def columns_of(facts: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns in the facts of `table_facts`."""
    return tuple(
        column_now(Column(each["name"], Kind(each["kind"]), each["unit"], each["about"])) for each in facts["columns"]
    )


def table_hash(table: Table) -> str:
    """The hash of the cells, without columns of measured times."""
    from adapt.traces.store.tables import columns_hash  # slow to load, and readers do without

    return columns_hash(arrow_of(table).drop_columns([each.name for each in table.columns if each.name in CLOCKED]))


def arrow_of(table: Table) -> pa.Table:
    """The cells as Arrow columns: UTC timestamps, float64 real numbers."""
    by_column = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    arrays = [_array(column, cells) for column, cells in zip(table.columns, by_column, strict=True)]
    return pa.table(dict(zip((column.name for column in table.columns), arrays, strict=True)))


def _array(column: Column, cells: tuple[Cell, ...]) -> pa.Array:
    types = {type(cell) for cell in cells if cell is not None}
    if not types <= {int, float} and len(types) > 1:
        names = ", ".join(sorted(each.__name__ for each in types))
        raise ValueError(f"column {column.name!r} mixes types of cells: {names}")
    if column.kind is Kind.TIME:
        return pa.array(cells, pa.int64()).cast(_TIME)
    if types == {str} or (column.kind is Kind.TEXT and not types):
        return pa.array(cells, pa.string())
    if types == {bool}:
        return pa.array(cells, pa.bool_())
    return pa.array(cells, pa.float64() if float in types or column.kind in _REAL else pa.int64())


def _cells(column: pa.ChunkedArray) -> list[Cell]:
    cells: list[Cell] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return cells


FILE = "rows.parquet"


def read_rows(path: Path, manifest: Manifest) -> Table:
    """One row per plan and channel count."""
    try:
        return read_table(manifest.file(path, FILE), manifest.summary["rows"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path / MANIFEST, error) from error
