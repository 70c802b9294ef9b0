"""Disk operations of artefacts; tests make each fail."""

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from adapt.core.errors import EnvironmentFailure
from adapt.traces.locations.arrow import arrow_sink
from adapt.traces.locations.location import is_stored

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def make_folder(path: Path) -> None:
    """Create a folder that does not exist."""
    path.mkdir(parents=False, exist_ok=False)


def make_file(path: Path) -> None:
    """Create an empty file, unless anything has its name."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file."""
    path.write_bytes(data)


def sync(path: Path) -> None:
    """Sync a file or a folder's entries to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rename(old: Path, new: Path) -> None:
    """Rename a file or folder; a file overwrites a file."""
    os.replace(old, new)


@contextmanager
def complete_file(path: Path, attempt: int) -> Iterator[Path]:
    """A file under a temporary name, renamed to `path` once complete.

    With speculative execution two attempts of a task may write one file at once; each writes its own.

    Args:
        path: The name of the complete file; until then the file is hidden.
        attempt: The number of the attempt.
    """
    if is_stored(path):  # an upload is whole or absent
        with arrow_sink(path) as passing:
            yield passing
        return
    own = path.with_name(f"_{path.name}-{attempt}")
    try:
        yield own
        rename(own, path)
    finally:
        own.unlink(missing_ok=True)


def exchange(first: Path, second: Path) -> bool:
    """Swap two names atomically; False if the system cannot."""
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    done = swap(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    return bool(done == 0)


def remove_tree(path: Path) -> None:
    """Remove a file, or a folder with its contents."""
    if is_stored(path):
        path.remove_below()
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file from a disk or store to a disk."""
    with source.open("rb") as read, target.open("wb") as written:
        shutil.copyfileobj(read, written)


@contextmanager
def disk_failures(target: Path) -> Iterator[None]:
    """Turn errors of the disk into one sentence that names the artefact."""
    try:
        yield
    except OSError as error:
        raise _explained(error, target) from error


def no_temporary_folder(error: BaseException) -> EnvironmentFailure | None:
    """A missing temporary folder in one sentence; None for other errors."""
    if "No usable temporary directory" not in str(error):
        return None
    return EnvironmentFailure(
        "no temporary folder can be written: its disk is full or read-only; free space, or set TMPDIR to another folder"
    )


def _explained(error: OSError, target: Path) -> EnvironmentFailure:
    where = f"{target}: "
    if (failure := no_temporary_folder(error)) is not None:
        return failure
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(existing_parent(target)).free
        return EnvironmentFailure(
            f"{where}the disk is full ({free:,} bytes free); the partial output was removed: free space, run again"
        )
    reason = os.strerror(error.errno) if error.errno else str(error)  # not a library's own sentence
    if error.errno == errno.EFBIG:
        return EnvironmentFailure(
            f"{where}cannot be written: {reason}; raise the limit of this shell on file sizes (ulimit -f), run again"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EnvironmentFailure(f"{where}{_at_fault(error, target)} is not writable; choose another -o")
    if isinstance(error, ConnectionError):
        return EnvironmentFailure(f"{where}the connection broke while writing ({reason}); run again")
    return EnvironmentFailure(f"{where}cannot be written: {reason}{_elsewhere(error, target)}")


def _at_fault(error: OSError, target: Path) -> str:
    return f"{error.filename}" if _elsewhere(error, target) else f"the folder {existing_parent(target)}"


def _elsewhere(error: OSError, target: Path) -> str:
    """The file at fault, if it is outside the artefact."""
    if not isinstance(error.filename, (str, os.PathLike)):
        return ""
    at_fault = Path(error.filename).absolute()
    if is_stored(target):
        return f" ({error.filename})"
    return "" if at_fault.is_relative_to(target.absolute().parent) else f" ({error.filename})"


def existing_parent(path: Path) -> Path:
    """The nearest folder above `path` that exists."""
    if is_stored(path):
        path = Path(gettempdir()) / "passing"
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    return parent
