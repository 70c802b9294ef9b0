"""Source files named by arguments, in the order that breaks ties."""

import glob
import os
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from adapt.core.errors import BadInput, UsageError
from adapt.traces.read_errors import readable
from adapt.traces.sources.reading.stdin import LABEL, STDIN, keep_stdin

SCHEME = "kafka://"
"""Beginning of the address of a topic."""


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
_UNREADABLE = {b"\x04\x22\x4d\x18": ("lz4", "lz4 -d"), b"7z\xbc\xaf": ("7-zip", "7z x")}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file, or a member of a zip archive.

    Attributes:
        path: Absolute path, since Spark's workers may run in another folder.
        label: `_path`: the path relative to the source argument; for a member, `archive.zip/member`.
        container: Compression.
        size: Bytes on disk, compressed.
        member: Name of the member in a zip archive.
        rows_before: Rows of the parts before it, if it is a part of a table.
    """

    path: str
    label: str
    container: Container
    size: int
    member: str | None = None
    rows_before: int = 0


def source_files(sources: Sequence[str], kept: Path | None = None) -> list[SourceFile]:
    """All files of the source arguments, in order.

    Within a folder or glob, files are in the order of their names.

    In folders, names that begin with `_` or `.` are skipped, as Spark and Arrow do.

    Args:
        sources: Files, folders, globs; `-` is standard input.
        kept: A file to store standard input in.

    Raises:
        UsageError: a file is named twice, or `-` without input.
        BadInput: a file does not exist, cannot be read, or has an unsupported compression.
        OSError: standard input cannot be stored.
    """
    for source in sources:
        if source.startswith(SCHEME):
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
        if (real := os.path.realpath(path)) in seen:
            raise UsageError(f"{path} is given twice; its rows would count twice")
        seen.add(real)
    files = []
    for path, label in found:
        with readable(path):
            files += list(_opened(path, label))
    return files


def _expanded(source: str) -> Iterator[tuple[Path, str]]:
    path = Path(source)
    if path.is_dir():
        found = sorted(_walk(path))
        if not found:
            raise BadInput(f"{source} is a folder without files")
        yield from ((file, str(file.relative_to(path))) for file in found)
    elif path.exists():
        yield path, path.name
    elif glob.has_magic(source):
        matches = [match for match in sorted(glob.glob(source, recursive=True)) if Path(match).is_file()]
        if not matches:
            raise BadInput(f"{source}: no file matches")
        root = _fixed_part(source)
        yield from ((Path(match), os.path.relpath(match, root)) for match in matches)
    else:
        raise BadInput(f"{source} does not exist")


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
    with path.open("rb") as file:
        start = file.read(8)
    for magic, (name, tool) in _UNREADABLE.items():
        if start.startswith(magic):
            raise BadInput(f"{path} has an unsupported compression, {name}; unpack it with `{tool}`")
    container = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), Container.PLAIN)
    if container is Container.ZIP:
        yield from _members(path, label)
    else:
        yield SourceFile(os.path.abspath(path), label, container, path.stat().st_size)


def _check_name(path: Path, label: str) -> None:
    try:
        label.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise BadInput(f"{shown}: the file name is not UTF-8; rename it") from error


def _members(path: Path, label: str) -> Iterator[SourceFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
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
            os.path.abspath(path), f"{label}/{member.filename}", Container.ZIP, member.compress_size, member.filename
        )
