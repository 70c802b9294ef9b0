"""Spark's event logs, in every form that its history server reads."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pyarrow as pa

from adapt.core.errors import BadInput
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.read_errors import readable

_ZSTD, _GZIP, _LZ4, _LZ4_FRAME, _SNAPPY = (
    b"\x28\xb5\x2f\xfd",
    b"\x1f\x8b",
    b"LZ4Block",
    b"\x04\x22\x4d\x18",
    b"\x82SNAPPY\0",
)
PACKED = (_ZSTD, _GZIP, _LZ4, _LZ4_FRAME, _SNAPPY)
"""Beginnings of compressed files."""

_STORED = 0x10
"""Method of an uncompressed block of LZ4Block, in the high half of its token."""
_CHUNK = 1 << 20
_LINE = 1 << 27
"""Longest line that is read."""

GIVE = "give a Spark event log or streaming progress, plain or compressed with zstd, gzip, lz4 or snappy"

_EVENT = re.compile(rb'\s*\{\s*"(Event|id|runId)"')


@dataclass(slots=True)
class Faults:
    """Lines that could not be read."""

    lines: int = 0
    cut: list[str] = field(default_factory=list)  # files that end early

    def sentences(self) -> list[str]:
        """What was skipped, in words."""
        return [
            *([f"{self.lines:,} lines that are not events are skipped"] if self.lines else []),
            *([f"{', '.join(self.cut)} ends early, as of an application that still runs"] if self.cut else []),
        ]


def is_event_log(path: Path) -> bool:
    """Whether a file or folder holds events of Spark."""
    parts = parts_of(path)
    if not parts:
        return False
    try:
        with readable(parts[0]), parts[0].open("rb") as file:
            first = next(_unpacked(file, parts[0]), b"")
    except (BadInput, OSError, zlib.error, pa.ArrowException, EOFError):
        return False
    return first.lstrip()[:40].replace(b" ", b"").startswith(b'{"Event":"SparkListener')


def parts_of(path: Path) -> list[Path]:
    """The files of a log in order, also of a folder."""
    if not path.is_dir():
        return [path]
    rolled = sorted(path.glob("events_*"), key=lambda part: _number(part.name))
    if rolled:
        return rolled
    dated = sorted(each for each in path.glob("eventlog-*") if each.is_file())
    return [*dated, *(each for each in [path / "eventlog"] if each.is_file())]


def _number(name: str) -> int:
    number = name.split("_")[1]
    return int(number) if number.isdecimal() else 0


def events(path: Path, faults: Faults, wanted: Sequence[str] = ()) -> Iterator[Mapping[str, Any]]:
    """The events of a log, compressed or not.

    Memory does not depend on its length.

    Args:
        faults: Receives what could not be read.
        wanted: Names of events; others are not parsed. Empty for all.

    Raises:
        BadInput: If no line is an event.
    """
    with readable(path):
        parts = parts_of(path)
    if not parts:
        raise BadInput(f"{path} is a folder without events_* or eventlog; {GIVE}")
    marks = [name.encode() for name in wanted]
    good = False
    for part in parts:
        with readable(part), part.open("rb") as file:
            for line in _lines(_whole(file, part, faults)):
                if marks and not any(mark in line[:200] for mark in marks) and _EVENT.match(line):
                    good = True
                    continue
                if not line.strip():
                    continue
                try:
                    found = orjson.loads(line)
                except orjson.JSONDecodeError:
                    faults.lines += 1
                    continue
                for event in found if isinstance(found, list) else [found]:
                    if isinstance(event, dict):
                        good = True
                        yield event
                    else:
                        faults.lines += 1
    if not good:
        raise BadInput(f"{path} holds no events; {GIVE}")


def _whole(file: BinaryIO, part: Path, faults: Faults) -> Iterator[bytes]:
    """The unpacked data, up to where a file that is still written ends."""
    try:
        yield from _unpacked(file, part)
    except (EOFError, zlib.error, OSError, pa.ArrowException):
        faults.cut.append(part.name)


def _unpacked(file: BinaryIO, part: Path) -> Iterator[bytes]:
    head = file.read(8)
    file.seek(0)
    if head.startswith(_GZIP):
        yield from _read(gzip.GzipFile(fileobj=file).read1)
    elif head.startswith((_ZSTD, _LZ4_FRAME)):
        yield from _frames(part, "zstd" if head.startswith(_ZSTD) else "lz4")
    elif head.startswith(_LZ4):
        yield from _lz4_blocks(file)
    elif head.startswith(_SNAPPY):
        yield from _snappy_chunks(file)
    else:
        yield from _read(file.read)


def _read(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while data := read(_CHUNK):
        yield data


def _frames(part: Path, codec: str) -> Iterator[bytes]:
    """Frames that Arrow unpacks; of a cut one, what comes before in ever smaller pieces."""
    done, size = 0, _CHUNK
    while True:
        source = arrow_source(part)
        stream = pa.CompressedInputStream(pa.OSFile(str(part)) if source is part else source, codec)
        try:
            skipped = 0
            while skipped < done:
                skipped += len(stream.read(min(_CHUNK, done - skipped)))
            while data := stream.read(size):
                done += len(data)
                yield data
        except (OSError, pa.ArrowException):
            if size == 1:
                raise EOFError from None
            size = max(1, size // 64)
            continue
        return


def _lz4_blocks(file: BinaryIO) -> Iterator[bytes]:
    """Blocks of lz4-java's `LZ4BlockOutputStream`: mark, token, sizes, checksum, data."""
    codec = pa.Codec("lz4_raw")
    while len(head := file.read(21)) == 21 and head.startswith(_LZ4):
        packed, size = int.from_bytes(head[9:13], "little"), int.from_bytes(head[13:17], "little")
        data = file.read(packed)
        if len(data) < packed:
            raise EOFError
        if size:
            yield data if head[8] & 0xF0 == _STORED else codec.decompress(data, size, asbytes=True)


def _snappy_chunks(file: BinaryIO) -> Iterator[bytes]:
    """Chunks of snappy-java's `SnappyOutputStream`: size, then a block that begins with its unpacked size."""
    codec = pa.Codec("snappy")
    file.read(16)
    while len(head := file.read(4)) == 4:
        if head == _SNAPPY[:4]:  # a stream that was appended
            file.read(12)
            continue
        data = file.read(int.from_bytes(head, "big"))
        if len(data) < int.from_bytes(head, "big"):
            raise EOFError
        size = shift = 0
        for byte in data[:5]:
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield codec.decompress(data, size, asbytes=True)


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of chunks; the last may have no end."""
    rest = b""
    for chunk in chunks:
        first, end, more = chunk.partition(b"\n")
        rest += first
        if not end:
            if len(rest) > _LINE:
                raise BadInput(f"a line is longer than {_LINE:,} bytes; {GIVE}")
            continue
        yield rest
        *whole, rest = more.split(b"\n")
        yield from whole
    if rest:
        yield rest
