"""Parquet and ORC in object stores, read by ranges in tasks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput
from adapt.traces.sources.reading.blocks import BLOCK_BYTES, PATH, ROWS_A_BATCH, Block, reader_schema
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.table_files import (
    TableFormat,
    arrow_type_in_spark,
    check_readable,
    columns_of_all,
    folder_columns,
    is_uuid,
    unreadable,
    uuid_texts,
)


@dataclass(frozen=True, slots=True)
class StoredTables:
    """A table format whose files Spark itself cannot reach."""

    form: TableFormat
    columns: tuple[str, ...]  # columns of all files, then those named by folders
    types: dict[str, pa.DataType]  # types of the columns, as Spark would read them
    refused: dict[str, str]  # types of the columns that Spark cannot read, by name
    folders: Mapping[str, Mapping[str, object]]  # values of the columns that folders name, by the label of a file
    times: ClassVar[dict[str, str]] = {}
    partitions: ClassVar[dict[str, str]] = {}

    def columns_of(self, file: SourceFile) -> tuple[str, ...]:
        """Columns of one file."""
        return (*self.form.schema_of(file).names, *self.folders)

    def cut(self, at: int, file: SourceFile) -> list[Block]:
        """Blocks of neighboring row groups or stripes.

        `offset` and `size` count these.
        """
        rows = self.form.pieces_of(file)
        together = max(1, int(BLOCK_BYTES * len(rows) // max(file.size, 1)))
        blocks, line = [], 1
        for first in range(0, len(rows), together):
            blocks.append(Block(at, file, first, len(rows[first : first + together]), line))
            line += sum(rows[first : first + together])
        return blocks

    def read(self, block: Block, wanted: Sequence[str], *, with_text: bool = False) -> Iterator[pa.RecordBatch]:
        """Rows of a block, as `blocks.read_block` yields them; text is JSON."""
        file, line, schema = block.source, block.line, reader_schema(wanted, self.types)
        check_readable(file, wanted, {name: kind for name, kind in self.refused.items() if name not in self.folders})
        there = set(self.form.schema_of(file).names)
        asked = there - self.refused.keys() if with_text else there.intersection(wanted)
        for rows in self.form.read_pieces(file, range(block.offset, block.offset + (block.size or 0)), sorted(asked)):
            for batch in rows.to_batches(ROWS_A_BATCH):
                yield self._batch(batch, schema, block, line, with_text=with_text)
                line += len(batch)

    def _batch(
        self, rows: pa.RecordBatch, schema: pa.Schema, block: Block, line: int, *, with_text: bool
    ) -> pa.RecordBatch:
        count, label = len(rows), block.source.label
        texts = [json.dumps(row, ensure_ascii=False, default=str) for row in rows.to_pylist()] if with_text else None
        same = {name: of_file[label] for name, of_file in self.folders.items()} | {PATH: label}
        columns = {
            "_file": pa.array(np.full(count, block.file, np.int32)),
            "_line": pa.array(np.arange(line, line + count)),
            "_text": pa.nulls(count, pa.string()) if texts is None else pa.array(texts, pa.string()),
            **{name: pa.repeat(pa.scalar(value, schema.field(name).type), count) for name, value in same.items()
               if name in schema.names},
        }  # fmt: skip
        for name in set(schema.names) - columns.keys():
            kind = schema.field(name).type
            columns[name] = _cast(rows.column(name), kind) if name in rows.schema.names else pa.nulls(count, kind)
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def stored_tables(form: TableFormat, files: Sequence[SourceFile]) -> StoredTables:
    """The format of these files, with the columns of all of them."""
    fields, folders, odd = columns_of_all(form, files), folder_columns(files), unreadable(form, files)
    types = {name: arrow_type_in_spark(field.type) for name, field in fields.items() if name not in odd}
    for name, values in folders.items():
        types[name] = pa.array(values).type if any(value is not None for value in values) else pa.string()
    by_label = {
        name: dict(zip([file.label for file in files], values, strict=True)) for name, values in folders.items()
    }
    return StoredTables(form, tuple(dict.fromkeys([*fields, *folders])), types, odd, by_label)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column as Spark would read it."""
    if is_uuid(column.type):
        return uuid_texts(column)
    try:
        if pa.types.is_timestamp(column.type):
            column = pc.floor_temporal(column, unit="microsecond")
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise BadInput(f"a value does not fit {kind} ({error})") from error
