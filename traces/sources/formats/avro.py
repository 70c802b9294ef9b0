"""Avro containers: blocks are found by their sizes, unpacked here, and taken apart by fastavro in Spark tasks."""

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

_SYNC_BYTES = 16
_LONGEST_BLOCK = 1 << 30
_FAR_MS = (-62_135_596_800_000, 253_402_300_799_999)
"""The years 1 to 9999 in milliseconds; others are more microseconds than there are numbers, and so are null."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a container says of itself.

    Attributes:
        schema: Of its records, as JSON.
        codec: How its blocks are packed.
        sync: What stands behind each block.
        size: Bytes up to the first block.
    """

    schema: str
    codec: str
    sync: bytes
    size: int


@dataclass(frozen=True, slots=True)
class AvroFiles:
    """Avro containers, perhaps with several schemas.

    Attributes:
        columns: The fields of all files, in the order in which they turn up.
        types: Their types.
    """

    columns: tuple[str, ...]
    types: dict[str, pa.DataType]
    times: ClassVar[dict[str, str]] = {}

    def columns_of(self, file: SourceFile) -> tuple[str, ...]:
        """The fields of one file.

        Raises:
            BadInput: it is damaged.
        """
        with _reading(file), open(file.path, "rb") as stream:
            return tuple(_kinds(header_of(stream).schema))

    def cut(self, at: int, file: SourceFile) -> list[Block]:
        """The blocks of one source file, whole blocks of Avro each, and the number of the first record of each."""
        blocks = []
        with _reading(file), open(file.path, "rb") as stream:
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
        """The records of a block in order, as `blocks.read_block` gives those of text; their text is JSON.

        Raises:
            BadInput: the file is damaged.
            EnvironmentFailure: there is no fastavro.
        """
        schema = reader_schema(wanted, self.types)
        row = block.line
        fastavro = _fastavro()
        with _reading(block.source), open(block.source.path, "rb") as stream:
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
    """The format of some containers: the fields of all of them.

    Raises:
        BadInput: one is damaged, holds no records, is packed in a way that is not known, or has a field of another type
            than one before it.
        EnvironmentFailure: there is no fastavro.
    """
    seen: dict[str, tuple[pa.DataType, SourceFile]] = {}
    for file in files:
        with _reading(file), open(file.path, "rb") as stream:
            header = header_of(stream)
            kinds = _kinds(header.schema)
        if header.codec not in _CODECS:
            raise BadInput(f"{file.label} is packed by {header.codec!r}; write it with one of {', '.join(_CODECS)}")
        for name, kind in kinds.items():
            known, first = seen.setdefault(name, (kind.final, file))
            if known != kind.final:
                raise BadInput(
                    f"{file.label} has {name} as {kind.final}, {first.label} as {known}; write both as one type,"
                    " or give each file its own [[stream]] of a --mapping"
                )
    return AvroFiles(tuple(seen), {name: kind for name, (kind, _) in seen.items()})


def header_of(stream: IO[bytes]) -> Header:
    """The header of a container.

    Raises:
        ValueError: it is none.
    """
    if stream.read(len(MAGIC)) != MAGIC:
        raise ValueError("it does not begin as Avro does")
    told: dict[str, bytes] = {}
    while count := _number(stream):
        if count < 0:
            _number(stream)
        for _ in range(abs(count)):
            name = _bytes(stream).decode()
            told[name] = _bytes(stream)
    sync = stream.read(_SYNC_BYTES)
    if "avro.schema" not in told or len(sync) != _SYNC_BYTES:
        raise ValueError("the header has no schema")
    codec = told.get("avro.codec", b"null").decode()
    return Header(told["avro.schema"].decode(), codec, sync, stream.tell())


def _kinds(schema: str) -> Mapping[str, Kind]:
    """The kinds of a record's fields, by name."""
    named: dict[str, Any] = {}
    parsed = _fastavro().schema.parse_schema(json.loads(schema), named_schemas=named)
    if not isinstance(parsed, dict) or parsed["type"] != "record":
        raise ValueError("its values are no records")
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
    """A container of the blocks in a stretch of a file, none of them packed, their times plain numbers."""

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
    told = b"".join(_sized(part) for part in (b"avro.schema", plain, b"avro.codec", b"null"))
    yield MAGIC + _varint(2) + told + _varint(0) + header.sync
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
        raise ValueError("a block has another checksum")
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
    """What goes wrong with a container, as one sentence."""
    try:
        yield
    except (BadInput, EnvironmentFailure):
        raise
    except (ValueError, EOFError, KeyError, IndexError, TypeError, OverflowError, OSError, zlib.error, lzma.LZMAError,
            RecursionError) as error:  # fmt: skip
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadInput(f"{file.label} is truncated or no Avro container ({told}); get the file again") from error


def _fastavro() -> Any:
    try:
        import fastavro
        import fastavro.schema
    except ImportError as error:
        raise EnvironmentFailure(
            "to read Avro, install the extra that brings fastavro: pip install 'adapt-streams[avro]'"
        ) from error
    return fastavro


def _number(stream: IO[bytes], at_end: int | None = -1) -> Any:
    """A number as Avro writes it; `at_end` None makes None of an end of the file before it."""
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
