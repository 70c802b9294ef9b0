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
from adapt.traces.sources.formats.avro_types import Kind, kind_of, without_meaning
from adapt.traces.sources.reading.blocks import BLOCK_BYTES, PATH, Block, reader_schema
from adapt.traces.sources.reading.files import SourceFile

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
        """Records of a block, as `blocks.read_block` yields them; text is JSON."""
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
                        columns.append(_column([record[field.name] for record in some], kinds[field.name]))
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
            if known != kind.final:
                raise BadInput(
                    f"{name} is {kind.final} in {file.label} and {known} in {first.label}; write both as one type,"
                    " or give each file its own [[stream]] in a --mapping"
                )
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
