"""A hash of column values, independent of files, row groups and batches."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


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
