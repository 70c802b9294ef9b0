"""Avro containers, read by fastavro in Spark tasks."""

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.traces.sources.reading.blocks import BLOCK_BYTES, PATH, Block, reader_schema
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.table_files import wider

MOST_DIGITS = 38
"""Digits of Spark's decimal numbers."""

_PLAIN: Mapping[str, pa.DataType] = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_NANOS = {
    ("long", "timestamp-nanos"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-nanos"): pa.timestamp("us"),
}
_NUMBERS = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
"""From narrow to wide."""

Tidy = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of a type become a column."""

    read: pa.DataType  # arrow type of fastavro's values
    final: pa.DataType  # arrow type of the column
    tidy: Tidy | None = None  # conversion of a value, or None


def kind_of(schema: Any, named: Mapping[str, Any], within: tuple[str, ...] = ()) -> Kind:
    """The kind of an Avro type, as parsed by fastavro.

    A union of several types besides null is the widest of them if all are numbers, else text, with nested values as
    JSON. So is a recursive type.

    Args:
        named: Types by full name.
        within: Names of the enclosing records.
    """
    if isinstance(schema, list):
        return _union([branch for branch in schema if branch != "null"], named, within)
    if isinstance(schema, str):
        if schema in _PLAIN:
            return Kind(_PLAIN[schema], _PLAIN[schema])
        return _TEXT if schema in within else kind_of(named[schema], named, within)
    name = schema["type"]
    if isinstance(name, dict | list):
        return kind_of(name, named, within)
    if name in ("record", "error"):
        return _record(schema, named, within)
    if name == "array":
        item = kind_of(schema["items"], named, within)
        each = item.tidy
        tidy = None if each is None else lambda values: [None if value is None else each(value) for value in values]
        return Kind(pa.list_(item.read), pa.list_(item.final), tidy)
    if name == "map":
        item = kind_of(schema["values"], named, within)
        each_value = item.tidy or (lambda value: value)
        return Kind(
            pa.map_(pa.string(), item.read),
            pa.map_(pa.string(), item.final),
            lambda values: [(key, None if value is None else each_value(value)) for key, value in values.items()],
        )
    if is_decimal(schema):
        decimal = pa.decimal128(schema["precision"], schema.get("scale", 0))
        return Kind(decimal, decimal)
    if name not in _PLAIN:
        return kind_of(name, named, within)
    logical = schema.get("logicalType")
    if (name, logical) in _NANOS:
        return Kind(pa.int64(), _NANOS[name, logical], lambda nanos: nanos // 1000)
    return Kind(_PLAIN[name], _LOGICAL.get((name, logical), _PLAIN[name]))


def is_decimal(schema: Mapping[str, Any]) -> bool:
    """Whether a type is a decimal number that Spark supports."""
    return (
        schema.get("logicalType") == "decimal"
        and schema.get("type") in ("bytes", "fixed")
        and 0 < schema.get("precision", 0) <= MOST_DIGITS
    )


def without_meaning(schema: Any) -> Any:
    """A schema without logical types other than decimals.

    So fastavro returns times as numbers.
    """
    if isinstance(schema, list):
        return [without_meaning(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = () if is_decimal(schema) else ("logicalType",)
    nested = ("type", "items", "values")
    kept = {
        name: without_meaning(value) if name in nested else value
        for name, value in schema.items()
        if name not in dropped
    }
    if "fields" in schema:
        kept["fields"] = [{**field, "type": without_meaning(field["type"])} for field in schema["fields"]]
    return kept


def _record(schema: Mapping[str, Any], named: Mapping[str, Any], within: tuple[str, ...]) -> Kind:
    inside = (*within, schema["name"])
    fields = {field["name"]: kind_of(field["type"], named, inside) for field in schema["fields"]}
    tidied = {name: kind.tidy for name, kind in fields.items() if kind.tidy is not None}

    def tidy(value: dict[str, Any]) -> dict[str, Any]:
        changed = {name: each(value[name]) for name, each in tidied.items() if value[name] is not None}
        return value | changed

    return Kind(
        pa.struct([(name, kind.read) for name, kind in fields.items()]),
        pa.struct([(name, kind.final) for name, kind in fields.items()]),
        tidy if tidied else None,
    )


def _union(branches: list[Any], named: Mapping[str, Any], within: tuple[str, ...]) -> Kind:
    kinds = [kind_of(branch, named, within) for branch in branches]
    if not kinds:
        return Kind(pa.string(), pa.string())
    if len(kinds) == 1:
        return kinds[0]
    if all(kind.tidy is None and kind.read == kind.final and kind.final in _NUMBERS for kind in kinds):
        widest = max((kind.final for kind in kinds), key=_NUMBERS.index)
        # a float beside a long would lose what the long holds
        wide = pa.float64() if widest == pa.float32() else widest
        return Kind(wide, wide)
    return _TEXT


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return json.dumps(value, ensure_ascii=False, default=_inside)


def _inside(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


_TEXT = Kind(pa.string(), pa.string(), _as_text)


MAGIC = b"Obj\x01"
ROWS_A_BATCH = 8_192

HOP_BYTES = 1 << 16
"""Bytes read at a time where only headers are looked at."""

_SYNC_BYTES = 16
_LONGEST_BLOCK = 1 << 30
_FAR_MS = (-62_135_596_800_000, 253_402_300_799_999)
"""Years 1 to 9999 in milliseconds; other times exceed 64-bit microseconds and become null."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a container."""

    schema: str  # schema of its records, as JSON
    codec: str  # compression of its blocks
    sync: bytes  # marker after each block
    size: int  # bytes before the first block


@dataclass(frozen=True, slots=True)
class AvroFiles:
    """Avro containers, possibly with different schemas."""

    columns: tuple[str, ...]  # fields of all files, in order of appearance
    types: dict[str, pa.DataType]  # types of the fields
    times: ClassVar[dict[str, str]] = {}
    partitions: ClassVar[dict[str, str]] = {}

    def columns_of(self, file: SourceFile) -> tuple[str, ...]:
        """Fields of one file."""
        with _reading(file), file.opened(HOP_BYTES) as stream:
            return tuple(_kinds(header_of(stream).schema))

    def cut(self, at: int, file: SourceFile) -> list[Block]:
        """Blocks of one source file, each of whole Avro blocks.

        The line of a block is the number of its first record.
        """
        blocks = []
        with _reading(file), file.opened(HOP_BYTES) as stream:
            header = header_of(stream)
            begun, row_begun, row = header.size, 1, 1
            position = header.size
            stream.seek(position)
            while (count := _number(stream, at_end=None)) is not None:
                size = _number(stream)
                if count < 0 or not 0 <= size <= _LONGEST_BLOCK:
                    raise ValueError(f"a block of {count} records and {size} bytes")
                stream.seek(size, io.SEEK_CUR)
                if stream.read(_SYNC_BYTES) != header.sync:
                    raise ValueError("a block does not end where it should")
                row += count
                position = stream.tell()
                if position - begun >= BLOCK_BYTES:
                    blocks.append(Block(at, file, begun, position - begun, row_begun))
                    begun, row_begun = position, row
            if position > begun or not blocks:
                blocks.append(Block(at, file, begun, position - begun, row_begun))
        return blocks

    def read(self, block: Block, wanted: Sequence[str], *, with_text: bool = False) -> Iterator[pa.RecordBatch]:
        """Records of a block, as `blocks.read_blocks` yields them; text is JSON."""
        schema = reader_schema(wanted, self.types)
        row = block.line
        fastavro = _fastavro()
        with _reading(block.source), block.source.opened() as stream:
            header = header_of(stream)
            kinds = _kinds(header.schema)
            records = iter(fastavro.reader(io.BufferedReader(_Unpacked(stream, block, header))))
            while some := list(islice(records, ROWS_A_BATCH)):
                count = len(some)
                columns = [
                    pa.array(np.full(count, block.file, np.int32)),
                    pa.array(np.arange(row, row + count)),
                    pa.nulls(count, pa.string()),
                    pa.array([json.dumps(record, ensure_ascii=False, default=str) for record in some], pa.string())
                    if with_text
                    else pa.nulls(count, pa.string()),
                ]
                for field in list(schema)[len(columns) :]:
                    if field.name == PATH:
                        columns.append(pa.repeat(pa.scalar(block.source.label, pa.string()), count))
                    elif field.name in kinds:
                        read = _column([record[field.name] for record in some], kinds[field.name])
                        columns.append(read if read.type == field.type else read.cast(field.type))
                    else:
                        columns.append(pa.nulls(count, field.type))
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
                row += count


def avro_files(files: Sequence[SourceFile]) -> AvroFiles:
    """The format of these containers, with the fields of all of them."""
    seen: dict[str, tuple[pa.DataType, SourceFile]] = {}
    for file in files:
        with _reading(file), file.opened(HOP_BYTES) as stream:
            header = header_of(stream)
            kinds = _kinds(header.schema)
        if header.codec not in _CODECS:
            raise BadInput(
                f"{file.label} has an unsupported codec {header.codec!r}; write it with one of {', '.join(_CODECS)}"
            )
        for name, kind in kinds.items():
            known, first = seen.setdefault(name, (kind.final, file))
            wide = wider(known, kind.final)
            if wide is None:
                raise BadInput(
                    f"{name} is {kind.final} in {file.label} and {known} in {first.label}; write both as one type,"
                    " or give each file its own [[stream]] in a --mapping"
                )
            if wide != known:
                seen[name] = wide, first if wide != kind.final else file
    return AvroFiles(tuple(seen), {name: kind for name, (kind, _) in seen.items()})


def header_of(stream: IO[bytes]) -> Header:
    """Read the header of a container."""
    if stream.read(len(MAGIC)) != MAGIC:
        raise ValueError("not an Avro header")
    fields: dict[str, bytes] = {}
    while count := _number(stream):
        if count < 0:
            _number(stream)
        for _ in range(abs(count)):
            name = _bytes(stream).decode()
            fields[name] = _bytes(stream)
    sync = stream.read(_SYNC_BYTES)
    if "avro.schema" not in fields or len(sync) != _SYNC_BYTES:
        raise ValueError("the header has no schema")
    codec = fields.get("avro.codec", b"null").decode()
    return Header(fields["avro.schema"].decode(), codec, sync, stream.tell())


def _kinds(schema: str) -> Mapping[str, Kind]:
    """Kinds of a record's fields, by name."""
    named: dict[str, Any] = {}
    parsed = _fastavro().schema.parse_schema(json.loads(schema), named_schemas=named)
    if not isinstance(parsed, dict) or parsed["type"] != "record":
        raise ValueError("its values are not records")
    return {field["name"]: kind_of(field["type"], named, (parsed["name"],)) for field in parsed["fields"]}


def _column(values: list[Any], kind: Kind) -> pa.Array:
    if kind.tidy is not None:
        values = [None if value is None else kind.tidy(value) for value in values]
    read = pa.array(values, kind.read)
    if pa.types.is_timestamp(kind.final) and kind.final.unit == "ms":
        known = pc.and_(pc.greater_equal(read, _FAR_MS[0]), pc.less_equal(read, _FAR_MS[1]))
        read = pc.if_else(known, read, None)
    return read if kind.read == kind.final else read.cast(kind.final)


class _Unpacked(io.RawIOBase):
    """A range of a file's blocks as an uncompressed container, with times as plain numbers."""

    def __init__(self, stream: IO[bytes], block: Block, header: Header) -> None:
        self._pieces = _pieces(stream, block, header)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _pieces(stream: IO[bytes], block: Block, header: Header) -> Iterator[bytes]:
    plain = json.dumps(without_meaning(json.loads(header.schema))).encode()
    metadata = b"".join(_sized(part) for part in (b"avro.schema", plain, b"avro.codec", b"null"))
    yield MAGIC + _varint(2) + metadata + _varint(0) + header.sync
    stream.seek(block.offset)
    end = block.offset + (block.size or 0)
    while stream.tell() < end:
        count = _number(stream)
        packed = _exactly(stream, _number(stream))
        yield _varint(count) + _sized(_CODECS[header.codec](packed)) + header.sync
        _exactly(stream, _SYNC_BYTES)


def _from_snappy(packed: bytes) -> bytes:
    size = shift = 0
    for byte in packed:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > _LONGEST_BLOCK:
        raise ValueError(f"a block of {size} bytes")
    plain = pa.decompress(packed[:-4], size, "snappy", asbytes=True)
    if zlib.crc32(plain) != int.from_bytes(packed[-4:], "big"):
        raise ValueError("a block has a wrong checksum")
    return bytes(plain)


def _from_zstd(packed: bytes) -> bytes:
    return bytes(pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read())


_CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda packed: zlib.decompress(packed, -zlib.MAX_WBITS),
    "snappy": _from_snappy,
    "zstandard": _from_zstd,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}


@contextmanager
def _reading(file: SourceFile) -> Iterator[None]:
    """Turn errors of a container into BadInput."""
    try:
        yield
    except (BadInput, EnvironmentFailure):
        raise
    except (ValueError, EOFError, KeyError, IndexError, TypeError, OverflowError, OSError, zlib.error, lzma.LZMAError,
            RecursionError) as error:  # fmt: skip
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadInput(f"{file.label} is truncated or not an Avro container ({why}); get the file again") from error


def _fastavro() -> Any:
    try:
        import fastavro
        import fastavro.schema
    except ImportError as error:
        raise EnvironmentFailure("reading Avro needs fastavro: pip install 'adapt-streams[avro]'") from error
    return fastavro


def _number(stream: IO[bytes], at_end: int | None = -1) -> Any:
    """A number in Avro's encoding; with `at_end` None, None at the end of the file."""
    shift = value = 0
    while byte := stream.read(1):
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
    if at_end is None and shift == 0:
        return None
    raise EOFError("it ends early")


def _bytes(stream: IO[bytes]) -> bytes:
    size = _number(stream)
    if not 0 <= size <= _LONGEST_BLOCK:
        raise ValueError(f"a text of {size} bytes")
    return _exactly(stream, size)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    found = stream.read(size)
    if len(found) != size:
        raise EOFError("it ends early")
    return found


def _sized(part: bytes) -> bytes:
    return _varint(len(part)) + part


def _varint(value: int) -> bytes:
    value <<= 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
