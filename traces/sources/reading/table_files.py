"""Parquet and ORC files, read by Arrow, with Hive partition columns."""

import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput
from adapt.traces.read_errors import damaged
from adapt.traces.sources.reading.blocks import BLOCK_BYTES, PATH, ROWS_A_BATCH, Block, reader_schema
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.spark.lazy import Column, F, T

_UNREADABLE = b"unreadable"
"""Metadata of a field that Spark cannot read: its type."""

_UNITS = ("s", "ms", "us", "ns")

NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Folder name for null in Hive and Spark."""


_SAME = (pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.float32(), pa.bool_(), pa.date32())
"""Types that Spark gives back."""


class TableFormat(Protocol):
    """A format of typed columns; plain data."""

    @property
    def name(self) -> str:
        """Its name for messages."""

    def schema_of(self, file: SourceFile) -> pa.Schema:
        """Columns of a file, `marked` if Spark cannot read them.

        Raises the errors of its library.
        """

    def pieces_of(self, file: SourceFile) -> list[int]:
        """Rows of each row group or stripe of a file."""

    def read_pieces(self, file: SourceFile, pieces: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of these row groups or stripes."""


def columns_of_all(form: TableFormat, files: Sequence[SourceFile]) -> tuple[dict[str, pa.Field], dict[str, str]]:
    """Columns of all files, in order of appearance.

    And why some of them cannot be read, by name. A column of several types is read as the widest: see `wider`.
    """
    seen: dict[str, tuple[pa.Field, SourceFile]] = {}
    odd: dict[str, str] = {}
    for file in files:
        try:
            schema = form.schema_of(file)
        except (OSError, pa.ArrowException) as error:
            raise BadInput(
                f"{file.label} is truncated or not valid {form.name} ({str(error).splitlines()[0]})"
            ) from error
        if len(set(schema.names)) < len(schema):
            twice = next(name for name in schema.names if schema.names.count(name) > 1)
            raise BadInput(f"{file.label} has several columns named {twice!r}; rename all but one, or drop them")
        for field in schema:
            known, first = seen.setdefault(field.name, (field, file))
            kind, unreadable = wider(known.type, field.type), (field.metadata or {}).get(_UNREADABLE)
            if unreadable:
                of_type = f"column {field.name!r} of type {unreadable.decode()}"
                odd.setdefault(field.name, f"{file.label}: Spark cannot read {of_type}; write it as text or a number")
            elif kind is None:
                odd[field.name] = (
                    f"{field.name} is {field.type} in {file.label} and {known.type} in {first.label}; write both as one"
                    " type, or give each file its own [[stream]] in a --mapping"
                )
            elif kind != known.type:
                seen[field.name] = field.with_type(kind), first if kind != field.type else file
    return {name: field for name, (field, _) in seen.items()}, odd


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds all values of two.

    None if there is none.

    Null fits any type; whole numbers become the wider one, or doubles with fractions; times take the finer unit.
    """
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    numbers = [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (one, other)]
    times = [pa.types.is_timestamp(kind) for kind in (one, other)]
    if all(numbers):
        if pa.types.is_integer(one) and pa.types.is_integer(other):
            signed = {pa.types.is_signed_integer(kind) for kind in (one, other)}
            return max(one, other, key=lambda kind: kind.bit_width) if len(signed) == 1 else pa.int64()
        return pa.float64()
    if all(times) and (one.tz is None) == (other.tz is None):
        return max(one, other, key=lambda kind: _UNITS.index(kind.unit))
    if {one, other} <= {pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())}:
        return pa.string()
    return None


def check_readable(wanted: Sequence[str], odd: Mapping[str, str]) -> None:
    """Refuse columns that cannot be read."""
    for name in wanted:
        if name in odd:
            raise BadInput(odd[name])


def marked(field: pa.Field, unreadable: str) -> pa.Field:
    """Field of a column, marked if Spark cannot read it."""
    return field.with_metadata({_UNREADABLE: unreadable}) if unreadable else field


def folder_columns(files: Sequence[SourceFile]) -> Mapping[str, list[object]]:
    """Columns named by Hive partition folders (`day=2024-01-01/`), by file.

    Values are whole numbers or dates if all print back as they are written, else text; a file outside such folders has
    null.
    """
    found = [_named_by(file.label) for file in files]
    names = dict.fromkeys(name for of_file in found for name in of_file)
    return {name: _typed([of_file.get(name) for of_file in found]) for name in names}


def quoted(name: str) -> Column:
    """Column of exactly this name, whatever its characters."""
    return F.col("`" + name.replace("`", "``") + "`")


def _named_by(label: str) -> dict[str, str | None]:
    parts = [part.split("=", 1) for part in label.split("/")[:-1] if re.match(r"[^=]+=", part)]
    return {_unescaped(name): None if value == NO_PARTITION else _unescaped(value) for name, value in parts}


def _unescaped(text: str) -> str:
    """A folder's name with %XX decoded: bytes of UTF-8, or characters as in Spark, so that no two names become one."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return re.sub("%([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), text)


def _typed(values: Sequence[str | None]) -> list[object]:
    known = [value for value in values if value is not None]
    # 007 is not 7
    if known and all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value) for value in known):
        return [None if value is None else int(value) for value in values]
    try:
        if known and all(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) for value in known):
            return [None if value is None else datetime.date.fromisoformat(value) for value in values]
    except ValueError:  # February 30 is text
        pass
    return list(values)


def is_uuid(kind: pa.DataType) -> bool:
    """Whether a column has UUIDs, which are read as text."""
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def uuid_texts(column: pa.Array) -> pa.Array:
    """A column of UUIDs as text."""
    return pa.array([None if each is None else str(each) for each in column.to_pylist()], pa.string())


def nanos_to_micros(whole: Column) -> Column:
    """Whole nanoseconds as microseconds, rounded down."""
    return F.call_function("div", whole - F.pmod(whole, F.lit(1000)), F.lit(1000)).cast("bigint")


def arrow_type_in_spark(kind: pa.DataType) -> pa.DataType:
    """The Arrow type that Spark gives a column."""
    if kind in _SAME:
        return kind
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(_spark_type(kind), timezone="UTC")


def _spark_type(kind: pa.DataType) -> "T.DataType":
    """The type that Spark gives a column of Parquet."""
    from pyspark.sql.pandas.types import from_arrow_type

    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20),
        pa.null(): pa.int32(),
    }
    if is_uuid(kind):
        return T.StringType()
    return from_arrow_type(wider.get(kind, kind), prefer_timestamp_ntz=True)


def as_spark_schema(schema: pa.Schema) -> "T.StructType":
    """The columns that Spark can read, with their types there."""
    fields = []
    for field in schema:
        with suppress(TypeError):
            fields.append(T.StructField(field.name, _spark_type(field.type)))
    return T.StructType(fields)


@dataclass(frozen=True, slots=True)
class StoredTables:
    """Files of a table format, read in blocks."""

    form: TableFormat
    columns: tuple[str, ...]  # columns of all files, then those named by folders
    types: dict[str, pa.DataType]  # types of the columns, as Spark would read them
    refused: dict[str, str]  # why columns cannot be read, by name
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
        """Rows of a block, as `blocks.read_blocks` yields them; text is JSON."""
        file, line, schema = block.source, block.line, reader_schema(wanted, self.types)
        check_readable(wanted, {name: why for name, why in self.refused.items() if name not in self.folders})
        there = set(self.form.schema_of(file).names)
        asked = there - self.refused.keys() if with_text else there.intersection(wanted)
        pieces = range(block.offset, block.offset + (block.size or 0))
        try:
            for rows in self.form.read_pieces(file, pieces, sorted(asked)):
                for batch in rows.to_batches(ROWS_A_BATCH):
                    yield self._batch(batch, schema, block, line, with_text=with_text)
                    line += len(batch)
        except (OSError, pa.ArrowInvalid) as error:
            if getattr(error, "errno", None):
                raise
            raise damaged(file.path, error, "get the file again") from error

    def _batch(
        self, rows: pa.RecordBatch, schema: pa.Schema, block: Block, line: int, *, with_text: bool
    ) -> pa.RecordBatch:
        count, label = len(rows), block.source.label
        texts = _as_json(rows) if with_text else None
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


def _as_json(rows: pa.RecordBatch) -> list[str]:
    values = [_values(each) for each in rows.columns]
    named = [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*values, strict=True)]
    return [json.dumps(row, ensure_ascii=False, default=str) for row in named] or ["{}"] * len(rows)


def _values(column: pa.Array) -> list[Any]:
    """Values in Python, or in words where a time is in no year that Python has."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        nested = pa.types.is_nested(column.type)
        return ["unreadable times"] * len(column) if nested else list(column.cast(pa.string()).to_pylist())


def stored_tables(form: TableFormat, files: Sequence[SourceFile]) -> StoredTables:
    """The format of these files, with the columns of all of them."""
    (fields, odd), folders = columns_of_all(form, files), folder_columns(files)
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
    if pa.types.is_struct(column.type):
        parts = [_cast(column.field(at), each.type) for at, each in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    try:
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = pc.floor_temporal(column, unit="microsecond")
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise BadInput(f"a value does not fit {kind} ({error})") from error
