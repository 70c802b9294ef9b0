"""Parts of a trace: their names and their writer."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.traces.store import disk

LARGEST_DICTIONARY = 64 << 20
"""Largest dictionary of a text column in bytes; further values of a row group are written plainly."""


def part_name(number: int) -> str:
    """File name of a part."""
    return f"part-{number:05d}.parquet"


def remove_unfinished(folder: Path) -> None:
    """Remove the parts of task attempts that were ended."""
    for left in folder.glob(f"_{part_name(0).replace('00000', '*')}*"):
        disk.remove_tree(left)


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
