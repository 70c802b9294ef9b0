"""Tables on disk: cells as Parquet, titles and units for the manifest."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import listed
from adapt.core.metrics import column_now
from adapt.core.table import Cell, Column, Kind, Table
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.read_errors import damaged

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
    from adapt.traces.store.column_hash import columns_hash  # slow to load, and readers do without

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
