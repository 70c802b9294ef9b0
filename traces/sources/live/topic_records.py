"""Kept records of a topic as columns of a source."""

import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import UsageError, did_you_mean
from adapt.traces.read_errors import readable
from adapt.traces.sources.formats.console import PARTITIONS
from adapt.traces.sources.names import KeyFormat
from adapt.traces.sources.reading.blocks import BLOCK_BYTES, PATH, Block, reader_schema
from adapt.traces.sources.reading.files import SourceFile

HEADER = struct.Struct("<4q32s")

FLUSH_ROWS = 1 << 16
FLUSH_BYTES = 16 << 20
"""Records that are held in memory before they are written."""

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class Frame:
    """Records of one partition that were written together."""

    at: int  # first byte of its data in the file
    size: int  # bytes of its data
    rows: int  # number of records
    first: int  # offset of the first record
    last: int  # offset of the last one
    digest: bytes = b""  # checksum of its data and these numbers

    def is_whole(self, file: IO[bytes]) -> bool:
        """Whether it is as it was written."""
        file.seek(self.at)
        return _digest(file.read(self.size), self.rows, self.first, self.last) == self.digest

    def table(self, file: IO[bytes]) -> pa.Table:
        """The records."""
        file.seek(self.at)
        with pa.ipc.open_stream(file.read(self.size)) as stream:
            return stream.read_all()


def frames_of(path: Path, begin: int = 0, size: int | None = None) -> Iterator[Frame]:
    """The whole frames in a range of a file, in order.

    Args:
        size: Bytes of the range; None up to the end.
    """
    end = path.stat().st_size if size is None else begin + size
    with path.open("rb") as file:
        at = begin + HEADER.size
        while at <= end:
            file.seek(at - HEADER.size)
            frame = Frame(at, *HEADER.unpack(file.read(HEADER.size)))
            if frame.size < 0 or frame.at + frame.size > end:
                return
            yield frame
            at = frame.at + frame.size + HEADER.size


class RecordFiles:
    """Files of the partitions in one folder, to which records are added."""

    def __init__(self, folder: Path) -> None:
        """Take up the files of a folder; a frame that was cut off is dropped."""
        self.folder = folder
        self._held: list[pa.RecordBatch] = []
        self.rows = 0
        self.last: dict[int, int] = {}
        for path in folder.glob("*.records"):
            end = 0
            with path.open("rb") as file:
                for frame in frames_of(path):
                    if not frame.is_whole(file):
                        break
                    end = frame.at + frame.size
                    self.rows += frame.rows
                    self.last[int(path.stem)] = frame.last
            os.truncate(path, end)

    def path(self, partition: int) -> Path:
        """The file of a partition."""
        return self.folder / f"{partition:06d}.records"

    def add(self, records: pa.RecordBatch) -> None:
        """Add records, to be written later.

        Args:
            records: With the columns `partition` and `offset`; each partition is in the order of offsets.
        """
        self._held.append(records)
        rows, size = (sum(counts) for counts in zip(*((len(each), each.nbytes) for each in self._held), strict=True))
        if rows >= FLUSH_ROWS or size >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        held = pa.Table.from_batches(self._held).combine_chunks() if self._held else None
        self._held = []
        if held is None or not len(held):
            return
        partitions = held["partition"].to_numpy()
        order = np.argsort(partitions, kind="stable")
        ordered, counts = held.take(pa.array(order)), np.bincount(partitions)
        begins = np.cumsum(counts) - counts
        for partition in np.flatnonzero(counts).tolist():
            self._append(partition, ordered.slice(begins[partition], counts[partition]))

    def _append(self, partition: int, records: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, records.schema, options=_LZ4) as stream:
            stream.write_table(records)
        data = sink.getvalue()
        first, last = (int(records["offset"][row].as_py()) for row in (0, -1))
        with self.path(partition).open("ab") as file:
            file.write(HEADER.pack(len(data), len(records), first, last, _digest(data, len(records), first, last)))
            file.write(data)
        self.rows += len(records)
        self.last[partition] = last


def _digest(data: Any, *numbers: int) -> bytes:
    digest = sha256(struct.pack(f"<{len(numbers)}q", *numbers))
    digest.update(data)
    return digest.digest()


def stored(names: Sequence[str]) -> pa.Schema:
    """Columns of the files, with the wanted parts of records."""
    parts = {"headers": pa.string(), "payload": pa.binary()}
    return pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("ts", pa.timestamp("ms", "UTC")),
            ("key", pa.binary()),
            ("payload_size", pa.int32()),
            *((name, parts[name]) for name in parts if name in names),
        ]
    )


COLUMNS = ("partition", "offset", "ts", "key", "payload_size", "headers", "payload", "schema_id")
"""Columns of a topic, named as kcat names them; the last is that of keys in Confluent's wire format."""

NOT_JSON = "payload is not a JSON object"

_ID_BYTES = 5
"""A zero byte and the number of the schema, before a key in Confluent's wire format."""

_LONG_BYTES = 8

_KEY_TYPES = {KeyFormat.TEXT: pa.string(), KeyFormat.INT: pa.int64()}

_TREE = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TopicRecords:
    """Kept records of a topic."""

    key_format: KeyFormat  # how keys were written
    # paths of the JSON fields of the payload that are wanted; without any, the payload is text
    fields: tuple[tuple[str, ...], ...] = ()
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    times: ClassVar[dict[str, str]] = {}
    partitions: ClassVar[dict[str, str]] = PARTITIONS

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Types of the columns."""
        return {
            **dict.fromkeys(("partition", "offset", "payload_size", "schema_id"), pa.int64()),
            "ts": pa.timestamp("us", "UTC"),
            "key": _KEY_TYPES.get(self.key_format, pa.binary()),
            "payload": _struct(_tree(self.fields)) if self.fields else pa.string(),
        }

    def columns_of(self, file: SourceFile) -> tuple[str, ...]:  # noqa: ARG002 - all have the same
        """Columns of one file: those of all."""
        return self.columns

    def cut(self, at: int, file: SourceFile) -> list[Block]:
        """Blocks of whole frames."""
        blocks: list[Block] = []
        with readable(file.path):
            begun, row, row_begun = 0, 1, 1
            for frame in frames_of(file.path):
                row += frame.rows
                end = frame.at + frame.size
                if end - begun >= BLOCK_BYTES or end == file.size:
                    blocks.append(Block(at, file, begun, end - begun, row_begun))
                    begun, row_begun = end, row
        return blocks

    def read(self, block: Block, wanted: Sequence[str], *, with_text: bool = False) -> Iterator[pa.RecordBatch]:
        """Records of a block, as `blocks.read_blocks` yields them; text is JSON."""
        schema, row = reader_schema(wanted, self.types), block.line
        with readable(block.source.path), block.source.path.open("rb") as file:
            for frame in frames_of(block.source.path, block.offset, block.size):
                held = frame.table(file).combine_chunks()
                yield self._batch(held, schema, block, row, with_text=with_text)
                row += frame.rows

    def _batch(self, held: pa.Table, schema: pa.Schema, block: Block, row: int, *, with_text: bool) -> pa.RecordBatch:
        count = len(held)
        reasons = np.full(count, None, object)
        columns: dict[str, pa.Array] = {
            "_file": pa.array(np.full(count, block.file, np.int32)),
            "_line": pa.array(np.arange(row, row + count)),
            "_text": pa.array(_texts(held), pa.string()) if with_text else pa.nulls(count, pa.string()),
            PATH: pa.repeat(pa.scalar(block.source.label, pa.string()), count),
        }
        keys = held["key"].combine_chunks()
        if "key" in schema.names:
            columns["key"] = self._key(keys, reasons)
        if "schema_id" in schema.names:
            columns["schema_id"] = schema_ids(pc.if_else(has_schema_id(keys), keys, None))
        if "payload" in schema.names:
            columns["payload"] = self._payload(held["payload"].combine_chunks(), reasons)
        columns["_reason"] = pa.array(reasons, pa.string())
        arrays = [
            (columns[field.name] if field.name in columns else held[field.name].combine_chunks()).cast(field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _key(self, keys: pa.Array, reasons: NDArray[Any]) -> pa.Array:
        match self.key_format:
            case KeyFormat.TEXT:
                return _as_text(keys, reasons, "key is not UTF-8 text; give --key-format bytes")
            case KeyFormat.INT:
                is_long = pc.fill_null(pc.equal(pc.binary_length(keys), _LONG_BYTES), True)
                _refuse(reasons, is_long, "key does not have the 8 bytes of an integer; give --key-format bytes")
                return long_keys(pc.if_else(is_long, keys, None))
            case KeyFormat.CONFLUENT:
                good = pc.fill_null(has_schema_id(keys), True)
                _refuse(reasons, good, "key is not in Confluent's wire format; give --key-format bytes")
        return keys

    def _payload(self, payloads: pa.Array, reasons: NDArray[Any]) -> pa.Array:
        if not self.fields:
            return _as_text(payloads, reasons, "payload is not UTF-8 text")
        tree, rows = _tree(self.fields), []
        for at, payload in enumerate(payloads.to_pylist()):
            found = _parsed(payload)
            if not isinstance(found, dict):
                reasons[at] = reasons[at] or NOT_JSON
            rows.append(_picked(found, tree))
        return pa.array(rows, _struct(tree))


def guessed_format(keys: pa.Array) -> KeyFormat:
    """How keys look as if they were written; text without any."""
    keys = keys.drop_null()
    if all(_is_plain(key) for key in keys.to_pylist()):
        return KeyFormat.TEXT
    if pc.all(pc.equal(pc.binary_length(keys), _LONG_BYTES)).as_py():
        return KeyFormat.INT
    return KeyFormat.CONFLUENT if pc.all(has_schema_id(keys)).as_py() else KeyFormat.BYTES


def check_fields(payloads: pa.Array, fields: Sequence[tuple[str, ...]]) -> None:
    """Check that some payloads have the wanted JSON fields."""
    found = [value for payload in payloads.to_pylist() if isinstance(value := _parsed(payload), dict)]
    known = {name: None for value in found for name in _paths(value)}
    for path in fields if found else ():
        name = ".".join(path)
        if not any(each == name or each.startswith(f"{name}.") for each in known):
            raise UsageError(f"payload has no field {name!r}{did_you_mean(name, known)}")


def _paths(value: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Full names of the fields of a JSON object."""
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _paths(inner, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def _parsed(payload: bytes | None) -> Any:
    """A payload as JSON, numbers as text; None if it is not."""
    try:
        return json.loads(payload or b"", parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None


def has_schema_id(keys: pa.Array) -> pa.Array:
    """Mask of keys in Confluent's wire format.

    They begin with a zero byte and the four bytes of a schema's number.
    """
    begins = pc.equal(pc.binary_slice(keys, 0, 1), pa.scalar(b"\0", pa.binary()))
    return pc.and_(begins, pc.greater_equal(pc.binary_length(keys), _ID_BYTES))


def schema_ids(keys: pa.Array) -> pa.Array:
    """The schema numbers of keys in Confluent's wire format."""
    numbers = pc.binary_join_element_wise(pa.scalar(b"\0" * 4, pa.binary()), pc.binary_slice(keys, 1, _ID_BYTES), b"")
    return long_keys(numbers)


def long_keys(keys: pa.Array) -> pa.Array:
    """Keys of 8 bytes, big-endian, as integers."""
    data = b"".join(keys.drop_null().to_pylist())
    numbers = np.zeros(len(keys), np.int64)
    known = np.asarray(keys.is_valid())
    numbers[known] = np.frombuffer(data, ">i8")
    return pa.array(numbers, mask=~known)


def _is_plain(key: bytes) -> bool:
    try:
        return key.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _as_text(values: pa.Array, reasons: NDArray[Any], reason: str) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [_decoded(value) for value in values.to_pylist()]
        read = pa.array(texts, pa.string())
        _refuse(reasons, pc.or_(values.is_null(), read.is_valid()), reason)
        return read


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _refuse(reasons: NDArray[Any], good: pa.Array, reason: str) -> None:
    bad = ~np.asarray(good)
    reasons[bad & (reasons == None)] = reason  # noqa: E711 - elementwise


def _tree(fields: Sequence[tuple[str, ...]]) -> _TREE:
    """Field paths as nested names; a field that has wanted fields is itself no text."""
    tree: _TREE = {}
    for path in sorted(fields):
        node = tree
        for name in path:
            node = node.setdefault(name, {})
    return tree


def _struct(tree: _TREE) -> pa.DataType:
    return pa.struct([(name, _struct(inner) if inner else pa.string()) for name, inner in tree.items()])


def _picked(value: Any, tree: _TREE) -> Mapping[str, Any] | None:
    """The wanted fields of a JSON object, leaves as text."""
    if not isinstance(value, dict):
        return None
    return {name: _picked(value.get(name), inner) if inner else _leaf(value.get(name)) for name, inner in tree.items()}


def _leaf(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _texts(held: pa.Table) -> list[str]:
    """Records as JSON, bytes as text."""

    def shown(value: Any) -> Any:
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value

    rows = held.drop_columns(["ts"]).to_pylist()
    return [json.dumps({name: shown(value) for name, value in row.items()}, ensure_ascii=False) for row in rows]
