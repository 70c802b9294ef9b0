"""Artefacts appear whole or not at all: made beside their place, then renamed into it."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adapt.core.errors import EnvironmentFailure
from adapt.traces.artefacts import disk

MANIFEST = "_manifest.json"
_OWNER = "_owner"


def check_free(target: Path, *, force: bool) -> None:
    """Refuse early a place where an artefact may not be put.

    Raises:
        EnvironmentFailure: something stands there and `force` is not given, or what stands there is no artefact of
            ours, or the folder above it is missing or may not be written.
    """
    parent = target.absolute().parent
    if not parent.is_dir():
        raise EnvironmentFailure(f"{target}: the folder {parent} does not exist; make it, or choose another -o")
    if not os.access(parent, os.W_OK):
        raise EnvironmentFailure(f"{target}: the folder {parent} may not be written; choose another -o")
    if not os.path.lexists(target):
        return
    if not force:
        raise EnvironmentFailure(f"{target} exists; add --force to replace it, or choose another -o")
    if target.is_dir() and not (target / MANIFEST).is_file() and any(target.iterdir()):
        raise EnvironmentFailure(
            f"{target} is a folder that adapt did not make, so it is not replaced; choose another -o"
        )


@contextmanager
def whole_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """A folder to fill; it takes the name `target` when the body ends well, and vanishes when it does not.

    What a killed run left is cleared by the next one; two runs at once for one target cannot be: the second is refused.

    Raises:
        EnvironmentFailure: see `check_free`; or another run is making the same artefact; or the disk fails.
    """
    check_free(target, force=force)
    partial = target.absolute().parent / f".{target.name}.partial"
    with disk.disk_failures(target):
        lock = _claim(partial, target)
        try:
            yield partial
            _sync_tree(partial)
            (partial / _OWNER).unlink()
            _put_in_place(partial, target, force=force)
        except BaseException:
            with suppress(OSError):
                disk.remove_tree(partial)
            raise
        finally:
            os.close(lock)


def write_whole(target: Path, data: bytes, *, force: bool = False) -> None:
    """Write one file that appears whole or not at all.

    Raises:
        EnvironmentFailure: see `check_free`; or the disk fails.
    """
    if target.is_dir():
        raise EnvironmentFailure(f"{target} is a folder; choose a file name")
    check_free(target, force=force)
    replace_whole(target, data)


def replace_whole(target: Path, data: bytes) -> None:
    """Write one file, at once, over whatever file stands there.

    Raises:
        EnvironmentFailure: the disk fails.
    """
    partial = target.absolute().parent / f".{target.name}.{os.getpid()}.partial"
    with disk.disk_failures(target):
        try:
            disk.write_bytes(partial, data)
            disk.sync(partial)
            disk.rename(partial, target)
            disk.sync(target.absolute().parent)
        except BaseException:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


def _claim(partial: Path, target: Path) -> int:
    """Make the partial folder ours and empty; the open handle returned holds the claim."""
    while True:
        with suppress(FileExistsError):
            disk.make_folder(partial)
        lock = os.open(partial, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise EnvironmentFailure(f"{target} is being written by another run{_owner_of(partial)}") from error
        if _still_named(lock, partial):
            break
        os.close(lock)  # its maker finished and renamed it between our two calls
    for left in partial.iterdir():
        disk.remove_tree(left)
    (partial / _OWNER).write_text(str(os.getpid()))
    return lock


def _owner_of(partial: Path) -> str:
    try:
        return f" (process {int((partial / _OWNER).read_text())}); wait for it or choose another -o"
    except (OSError, ValueError):
        return "; wait for it or choose another -o"


def _still_named(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), os.stat(path))
    except FileNotFoundError:
        return False


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        disk.sync(path)
    disk.sync(folder)


def _put_in_place(partial: Path, target: Path, *, force: bool) -> None:
    """Name the finished folder; what it replaces is never missing in between where the system can swap names."""
    place: Callable[[], None] = lambda: disk.rename(partial, target)  # noqa: E731
    if not os.path.lexists(target):
        place()
    elif not force:
        raise EnvironmentFailure(f"{target} appeared while this run was working; nothing was replaced")
    elif disk.exchange(partial, target):
        disk.remove_tree(partial)
    else:
        replaced = partial.with_suffix(".replaced")
        disk.rename(target, replaced)
        try:
            place()
        except OSError:
            disk.rename(replaced, target)
            raise
        disk.remove_tree(replaced)
    disk.sync(target.absolute().parent)
