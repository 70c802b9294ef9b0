"""Atomic writes: an artefact is built under a temporary name, then renamed."""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import cast

from adapt.core.errors import EnvironmentFailure
from adapt.traces.locations import run_folders
from adapt.traces.locations.location import is_stored
from adapt.traces.locations.run_folders import MANIFEST
from adapt.traces.store import disk

_OWNER = "_owner"


def check_free(target: Path, *, force: bool) -> None:
    """Check, before any work, that an artefact can be written here."""
    if is_stored(target):
        run_folders.check_free(target, force=force, folder=False)
        return
    parent = target.absolute().parent
    if not parent.is_dir():
        raise EnvironmentFailure(f"{target}: the folder {parent} does not exist; create it, or choose another -o")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise EnvironmentFailure(f"{target}: the folder {parent} is not writable; choose another -o")
    if not os.path.lexists(target):
        return
    if not force:
        raise EnvironmentFailure(f"{target} exists; add --force to overwrite it, or choose another -o")
    if target.is_dir() and not (target / MANIFEST).is_file() and any(target.iterdir()):
        raise EnvironmentFailure(
            f"{target} is a folder that adapt did not create, so it is not overwritten; choose another -o"
        )


def check_folder_free(target: Path | None, *, force: bool) -> None:
    """As `check_free`, for a folder, which never overwrites a file."""
    if target is None:
        return
    if is_stored(target):
        run_folders.check_free(target, force=force, folder=True)
        return
    check_free(target, force=force)
    if os.path.isfile(target) and not target.is_symlink():
        raise EnvironmentFailure(
            f"{target} is a file, but the output is a folder; remove the file, or choose another -o"
        )


@contextmanager
def whole_folder(target: Path, *, force: bool = False, local: bool = False) -> Iterator[Path]:
    """A temporary folder that becomes `target` on success, else is removed.

    On a disk it is renamed, leftovers of a killed run are removed by the next one, and of two concurrent runs for one
    target the second fails. For a store see `run_folders`; of two concurrent runs the first to finish wins.

    Args:
        local: Whether it has to be on a disk of this machine; otherwise it is in the store, where tasks write parts.
    """
    if is_stored(target):
        stored = run_folders.uploaded_folder if local else run_folders.run_folder
        with disk.disk_failures(cast(Path, target)), stored(target, force=force) as folder:
            yield cast(Path, folder)
        return
    check_folder_free(target, force=force)
    partial = _partial_of(target)
    with disk.disk_failures(target), ExitStack() as locks:
        own = claim(partial, target, disk.make_folder, locks)
        _restore(_replaced_of(partial), target)
        held = [own]
        try:
            check_folder_free(target, force=force)  # a backup of a killed run may have been restored
            disk.write_bytes(partial / _OWNER, str(os.getpid()).encode())
            yield partial
            _sync_tree(partial)
            held += _held_while_replaced(target, locks)
            _put_in_place(partial, target, force=force)
        except BaseException:
            # the name may belong to another run by now
            if any(_is_named(handle, partial) for handle in held):
                with suppress(OSError):
                    disk.remove_tree(partial)
            raise


def write_whole(target: Path, data: bytes, *, force: bool = False) -> None:
    """Write one file atomically."""
    if is_stored(target):
        run_folders.write_object(target, data, force=force)
        return
    with whole_file(target, force=force) as partial:
        disk.write_bytes(partial, data)


@contextmanager
def whole_file(target: Path, *, force: bool = False) -> Iterator[Path]:
    """A temporary file that becomes `target` on success, else is removed."""
    if is_stored(target):
        run_folders.check_free(target, force=force, folder=False)
        with disk.disk_failures(cast(Path, target)), disk.complete_file(cast(Path, target), 0) as passing:
            yield passing
        return
    if target.is_dir():
        raise EnvironmentFailure(f"{target} is a folder, but the output is a file; choose another -o")
    check_free(target, force=force)
    with _replacing(target) as partial:
        check_free(target, force=force)
        yield partial


def replace_whole(target: Path, data: bytes) -> None:
    """Write one file atomically, over any existing one."""
    if is_stored(target):
        target.write_bytes(data)
        return
    with _replacing(target) as partial:
        disk.write_bytes(partial, data)


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A file that replaces another one on success, else is removed."""
    partial = _partial_of(target)
    with disk.disk_failures(target), ExitStack() as locks:
        own = claim(partial, target, disk.make_file, locks)
        try:
            _restore(_replaced_of(partial), target)
            yield partial
            disk.sync(partial)
            disk.rename(partial, target)
            disk.sync(target.absolute().parent)
        except BaseException:
            if _is_named(own, partial):
                with suppress(OSError):
                    disk.remove_tree(partial)
            raise


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Time in which no run writes one file."""
    partial = _partial_of(target)
    with disk.disk_failures(target), ExitStack() as locks:
        claim(partial, target, disk.make_file, locks)
        try:
            yield
        finally:
            disk.remove_tree(partial)


def _partial_of(target: Path) -> Path:
    return target.absolute().parent / f".{target.absolute().name}.partial"


def _replaced_of(partial: Path) -> Path:
    """Where the old artefact is during the swap, on systems that cannot swap names."""
    return partial.with_suffix(".replaced")


def claim(partial: Path, target: Path, make: Callable[[Path], None], locks: ExitStack, *, resumed: bool = False) -> int:
    """Create and lock an unfinished file or folder.

    What a killed run left may be another user's or have a second name, so it is removed first.

    Args:
        resumed: Whether a folder that a killed run left is taken up as it is.

    Returns:
        A handle that holds the lock until `locks` close.
    """
    while True:
        left = False
        try:
            make(partial)
        except FileExistsError:
            left = True
        with ExitStack() as attempt:
            try:
                mode = os.lstat(partial).st_mode
                if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                    raise EnvironmentFailure(
                        f"{target} is written as {partial.name} first, but that is a link or a pipe; remove it"
                    )
                lock = os.open(partial, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError:
                continue  # another run finished and renamed it between the two calls
            attempt.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise EnvironmentFailure(f"{target} is being written by another run{_owner_of(partial)}") from error
            if not _is_named(lock, partial):
                continue
            is_folder = stat.S_ISDIR(os.fstat(lock).st_mode)
            if (left and not resumed) or is_folder != (make is disk.make_folder):
                disk.remove_tree(partial)
                continue
            locks.push(attempt.pop_all())
            return lock


def _owner_of(partial: Path) -> str:
    try:
        return f" (process {int((partial / _OWNER).read_text())}); wait for it or choose another -o"
    except (OSError, ValueError):
        return "; wait for it or choose another -o"


def _is_named(handle: int, path: Path) -> bool:
    """Whether the open file has that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _restore(replaced: Path, target: Path) -> None:
    """Restore or remove the backup of a run that was killed while it replaced `target`."""
    if not os.path.lexists(replaced):
        return
    if os.path.lexists(target):
        disk.remove_tree(replaced)
    else:
        disk.rename(replaced, target)


def _sync_tree(folder: Path) -> None:
    """Sync all files to disk; the owner file is removed last, so that other runs can name this one."""
    for path in sorted(folder.rglob("*")):
        if path.name != _OWNER:
            disk.sync(path)
    disk.remove_tree(folder / _OWNER)
    disk.sync(folder)


def _held_while_replaced(target: Path, locks: ExitStack) -> list[int]:
    """Lock the folder to be replaced: during the swap it has the partial name, which another run may claim."""
    if target.is_symlink() or not target.is_dir():
        return []
    handle = os.open(target, os.O_RDONLY)
    locks.callback(os.close, handle)
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return [handle]


def _put_in_place(partial: Path, target: Path, *, force: bool) -> None:
    """Rename the finished folder; where the system can swap names, the target exists at any moment."""
    if not os.path.lexists(target):
        disk.rename(partial, target)
    elif not force:
        raise EnvironmentFailure(f"{target} was created during this run and is not overwritten; choose another -o")
    elif disk.exchange(partial, target):
        disk.sync(target.absolute().parent)  # else a crash may undo the swap, but not the removal
        disk.remove_tree(partial)
    else:
        replaced = _replaced_of(partial)
        disk.rename(target, replaced)
        try:
            disk.rename(partial, target)
        except BaseException:
            disk.rename(replaced, target)
            raise
        disk.sync(target.absolute().parent)
        disk.remove_tree(replaced)
    disk.sync(target.absolute().parent)
