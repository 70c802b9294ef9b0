"""Source files by name, and their unpacked bytes."""

import bz2
import glob
import gzip
import lzma
import os
import re
import shutil
import stat
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from io import BytesIO
from pathlib import Path, PurePath
from typing import IO, Any, cast

import pyarrow as pa

from adapt.core.errors import AdaptError, BadInput, UsageError, near_miss, redacted
from adapt.traces.locations.arrow import arrow_sink
from adapt.traces.locations.location import TOPIC_SCHEME, is_stored, location
from adapt.traces.read_errors import readable

_CHUNK_BYTES = 8 << 20

STDIN = "-"
"""The source argument for standard input."""

LABEL = "stdin"
"""`_path` of its rows."""


def keep_stdin(path: Path) -> None:
    """Store standard input in a file, to read it several times."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise UsageError(f"{STDIN} reads standard input, but nothing is piped into it; pipe a file, or name one")
    with arrow_sink(path) as own, own.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, _CHUNK_BYTES)


class Container(StrEnum):
    """Compression of a file, recognized by its first bytes."""

    PLAIN = "plain"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    ZSTD = "zstd"
    XZ = "xz"
    ZIP = "zip"


_MAGIC = {
    b"\x1f\x8b": Container.GZIP,
    b"BZh": Container.BZIP2,
    b"\x28\xb5\x2f\xfd": Container.ZSTD,
    b"\xfd7zXZ": Container.XZ,
    b"PK\x03\x04": Container.ZIP,
    b"PK\x05\x06": Container.ZIP,  # without members
}
_NO_MEMBERS = b"PK\x05\x06" + bytes(18)
_LOGS = {
    "_delta_log": "Delta",
    ".hoodie": "Hudi",
    "_spark_metadata": "Spark's streaming sink",
    "metadata/*.metadata.json*": "Iceberg",
    "snapshot/snapshot-*": "Paimon",
}
"""Tables by the folder of their log, or the files in it."""

_BY_NAME = "read the table by `adapt ingest --table CATALOG.DB.TABLE`"
_WAYS = {
    "Spark's streaming sink": "read the table by `adapt ingest --sql 'SELECT * FROM parquet.`{}`'`",
    "DuckLake": "write them to a file by COPY in DuckDB, and read that",
}
"""How to read the rows of tables that have no name in Spark."""

_OF_DUCKLAKE = re.compile(r"ducklake-[\da-f-]{36}(-delete)?\.parquet")
"""Files of tables whose log is in a database."""

_UNREADABLE = {b"\x04\x22\x4d\x18": ("lz4", "lz4 -d"), b"7z\xbc\xaf": ("7-zip", "7z x")}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file, or a member of a zip archive."""

    # absolute path, since Spark's workers may run in another folder; or a place in a store, with the version that was
    # listed
    path: Path
    label: str  # `_path`: the path relative to the source argument; for a member, `archive.zip/member`
    container: Container  # compression
    size: int  # bytes on disk, compressed
    member: str | None = None  # name of the member in a zip archive
    rows_before: int = 0  # rows of the parts before it, if it is a part of a table
    # what any change of a file of the user's changes; empty in a store, where each read names the version
    stamp: tuple[int, ...] = ()

    def opened(self, buffering: int = -1) -> IO[bytes]:
        """The file, opened for reading.

        Without a buffer, each read of an object in a store is one request.
        """
        return self.path.open("rb", buffering)


def source_files(sources: Sequence[str], kept: Path | None = None) -> list[SourceFile]:
    """All files of the source arguments, in order.

    Within a folder or glob, files are in the order of their names.

    In folders, names that begin with `_` or `.` are skipped, as Spark and Arrow do.

    Args:
        sources: Files, folders, globs, on a disk or as URIs of a store; `-` is standard input.
        kept: A file to store standard input in.
    """
    for source in sources:
        if source.startswith(TOPIC_SCHEME):
            raise UsageError(f"a topic must be made a trace first: adapt ingest {source} -o NAME.trace")
    if sources.count(STDIN) > 1:
        raise UsageError(f"{STDIN} (standard input) is given twice; it can be read only once")
    found = []
    for source in sources:
        if source == STDIN and kept is not None:
            keep_stdin(kept)
            found.append((kept, LABEL))
        else:
            with readable(source):
                found += list(_expanded(source))
    seen = set()
    for path, _ in found:
        if (real := str(path) if is_stored(path) else os.path.realpath(path)) in seen:
            raise UsageError(f"{path} is given twice; its rows would count twice")
        seen.add(real)
    _check_no_table([path for path, _ in found])
    files: list[SourceFile] = []
    for path, label in found:
        with readable(path):
            opened = _opened(path, redacted(label) if "?" in label else label)  # a download's name may hold its URL
            files += (replace(file, stamp=()) for file in opened) if path == kept else opened
    return files


def _check_no_table(paths: Sequence[Path]) -> None:
    """Check that no file belongs to a table, which leaves removed rows in its files."""
    folders: dict[Path, None] = {}
    for path in paths:
        folder = _absolute(path).parent
        while path.suffix in (".parquet", ".orc", ".avro") and folder not in folders:
            folders[folder] = None
            folder = folder.parent
    found = {path.parent: "DuckLake" for path in paths if _OF_DUCKLAKE.fullmatch(path.name)}
    # folders such as day=2024-03-01 are Hive's partitions
    for folder, table in found.items() or ((each, _table_in(each)) for each in folders if "=" not in each.name):
        if table:
            raise BadInput(
                f"{folder} is a table of {table}, whose files may hold rows that are not in it;"
                f" {_WAYS.get(table, _BY_NAME).format(folder)}"
            )


def _table_in(folder: Path) -> str:
    """The kind of table that a folder is; empty if none, or if it cannot be read, as a source's parents need not."""
    with suppress(OSError, AdaptError):
        for log, name in _LOGS.items():
            of_log, _, files = log.partition("/")
            if any((folder / of_log).glob(files)) if files else (folder / log).is_dir():
                return name
    return ""


@contextmanager
def unchanged(files: Sequence[SourceFile]) -> Iterator[None]:
    """Check that files stay as they are while they are read."""
    try:
        yield
    except Exception:
        _check_unchanged(files)
        raise
    _check_unchanged(files)


def _check_unchanged(files: Sequence[SourceFile]) -> None:
    for file in files:
        if file.stamp and _stamp(file.path) != file.stamp:
            raise BadInput(f"{file.path} changed while it was read; wait until nobody writes it, or give a copy")


def _stamp(path: Path) -> tuple[int, ...]:
    """Size, identity and times of a file; the time of change cannot be set back."""
    if is_stored(path):
        return ()
    try:
        found = path.stat()
    except OSError:
        return (-1,)
    return found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _expanded(source: str) -> Iterator[tuple[Path, str]]:
    path = location(source)
    if is_stored(path):
        yield from _objects(cast(Path, path), source)
    elif path.is_dir():
        found = sorted(_walk(path))
        if not found:
            raise BadInput(f"{source} is a folder without files")
        yield from ((file, str(file.relative_to(path))) for file in found)
    elif path.exists():
        yield path, path.name
    elif glob.has_magic(str(path)):
        matches = [match for match in sorted(glob.glob(str(path), recursive=True)) if Path(match).is_file()]
        if not matches:
            raise BadInput(f"{source}: no file matches")
        root = _fixed_part(str(path))
        yield from ((Path(match), os.path.relpath(match, root)) for match in matches)
    else:
        raise BadInput(f"{source} does not exist")


def _objects(path: Path, source: str) -> Iterator[tuple[Path, str]]:
    """Objects of a store: one, all below a prefix, or those that match a glob."""
    if glob.has_magic(str(path)):
        root = location(_fixed_part(str(path)))
        found = [match for match in sorted(root.glob(str(path.relative_to(root)))) if match.is_file()]
        if not found:
            raise BadInput(f"{source}: no object matches")
    elif path.is_file():
        root, found = path.parent, [path]
    else:
        below = {each.relative_to(path): each for each in path.rglob("*")}
        folders = {folder for name in below for folder in name.parents}  # some tools leave empty objects for these
        root, found = path, sorted(each for name, each in below.items() if name not in folders and not _hidden(name))
        if not found:
            near = near_miss(path.name, [each.name for each in path.parent.iterdir()])
            raise BadInput(f"{source}: there is no such object, nor any below that prefix{near}")
    yield from ((match, str(match.relative_to(root))) for match in found)


def _hidden(name: PurePath) -> bool:
    return any(part.startswith(("_", ".")) for part in name.parts)


def _absolute(path: Path) -> Path:
    return cast(Path, path) if is_stored(path) else Path(os.path.abspath(path))


def _walk(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            yield from _walk(entry)
        else:
            yield entry


def _fixed_part(pattern: str) -> str:
    """The folder above the first part of a glob that has a wildcard."""
    fixed: list[str] = []
    for part in Path(pattern).parts:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return str(Path(*fixed)) if fixed else "."


def _opened(path: Path, label: str) -> Iterator[SourceFile]:
    _check_name(path, label)
    if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would wait for the writer
        raise BadInput(f"{path} is a pipe or device, but sources are read more than once; pipe it into - instead")
    stamp = _stamp(path)
    with path.open("rb", 0) as file:
        start = file.read(8)
    for magic, (name, tool) in _UNREADABLE.items():
        if start.startswith(magic):
            raise BadInput(f"{path} has an unsupported compression, {name}; unpack it with `{tool}`")
    container = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), Container.PLAIN)
    if container is Container.ZIP:
        yield from (replace(member, stamp=stamp) for member in _members(path, label))
    else:
        yield SourceFile(_absolute(path), label, container, path.stat().st_size, stamp=stamp)


def _check_name(path: Path, label: str) -> None:
    try:
        label.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise BadInput(f"{shown}: the file name is not UTF-8; rename it") from error


def _members(path: Path, label: str) -> Iterator[SourceFile]:
    try:
        members = _directory(path).infolist()
    except (zipfile.BadZipFile, OSError) as error:
        raise BadInput(f"{path} is truncated or not a zip archive ({error}); get the file again") from error
    files = [member for member in members if not member.is_dir() and not member.filename.startswith("__MACOSX/")]
    if not files:
        raise BadInput(f"{path} is an archive without files")
    named = Counter(member.filename for member in files)
    for member in files:
        if named[member.filename] > 1:
            raise BadInput(
                f"{path}: the archive has two members named {member.filename!r}, of which only one is readable; unpack"
                " it first"
            )
        if member.flag_bits & 1:
            raise BadInput(f"{path}: member {member.filename!r} is encrypted; unpack it first")
        yield SourceFile(
            _absolute(path), f"{label}/{member.filename}", Container.ZIP, member.compress_size, member.filename
        )


def _directory(path: Path) -> zipfile.ZipFile:
    """A zip archive of which only the directory is read, once for many members."""
    return _directory_of(path, path.found() if is_stored(path) else _stamp(path))


@lru_cache(8)
def _directory_of(path: Path, _version: object) -> zipfile.ZipFile:
    with path.open("rb") as packed, zipfile.ZipFile(packed) as archive:
        return archive


CHUNK_BYTES = 8 << 20
LONGEST_HEAD = 16 << 20


_UNPACKED: Mapping[Container, Callable[[IO[bytes]], Any]] = {
    Container.GZIP: gzip.open,
    Container.BZIP2: bz2.open,
    Container.XZ: lzma.open,
    Container.ZSTD: lambda plain: pa.CompressedInputStream(plain, "zstd"),
}


@contextmanager
def unpacked(file: SourceFile) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file, read in order."""
    try:
        with ExitStack() as opened:
            plain = opened.enter_context(file.opened(*((0,) if file.container is Container.PLAIN else ())))
            if file.container is Container.ZIP:
                archive = opened.enter_context(zipfile.ZipFile(BytesIO(_NO_MEMBERS)))
                archive.fp = plain
                member = _directory(file.path).getinfo(str(file.member))
                yield opened.enter_context(archive.open(member))
            elif file.container is Container.PLAIN:
                yield plain
            else:
                yield opened.enter_context(_UNPACKED[file.container](plain))
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise BadInput(f"{file.label} is truncated or damaged ({error}); get the file again") from error
    except NotImplementedError as error:
        raise BadInput(f"{file.label} has an unsupported compression ({error}); unpack it first") from error
    except OSError as error:
        if error.errno is None:  # an error of bzip2 or zstd, not of the disk
            raise BadInput(f"{file.label} is truncated or damaged ({error}); get the file again") from error
        raise BadInput(f"{file.label} cannot be read: {error.strerror or error}") from error


def head_of(file: SourceFile, size: int) -> bytes:
    """The first unpacked bytes of a file, with two whole lines.

    At least `size` bytes unless the file is shorter, and at most about `LONGEST_HEAD`.
    """
    with unpacked(file) as stream:
        head = more = stream.read(size)
        while more and head.count(b"\n") < 2 and len(head) < LONGEST_HEAD:
            more = stream.read(size)
            head += more
        return head
