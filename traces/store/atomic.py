"""Artefacts appear whole or not at all: made beside their place, then renamed into it."""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from adapt.core.errors import EnvironmentFailure
from adapt.traces.store import disk

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
    if not os.access(parent, os.W_OK | os.X_OK):
        raise EnvironmentFailure(f"{target}: the folder {parent} may not be written; choose another -o")
    if not os.path.lexists(target):
        return
    if not force:
        raise EnvironmentFailure(f"{target} exists; add --force to replace it, or choose another -o")
    if target.is_dir() and not (target / MANIFEST).is_file() and any(target.iterdir()):
        raise EnvironmentFailure(
            f"{target} is a folder that adapt did not make, so it is not replaced; choose another -o"
        )


def check_folder_free(target: Path | None, *, force: bool) -> None:
    """As `check_free`, for an artefact that is a folder: a file is not replaced by it; None keeps nothing."""
    if target is None:
        return
    check_free(target, force=force)
    if target.is_file() and not target.is_symlink():
        raise EnvironmentFailure(
            f"{target} is a file, which a folder does not replace; remove it, or choose another -o"
        )


@contextmanager
def whole_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """A folder to fill; it takes the name `target` when the body ends well, and vanishes when it does not.

    What a killed run left is cleared by the next one; two runs at once for one target cannot be: the second is refused.

    Raises:
        EnvironmentFailure: see `check_free`; or a file stands there; or another run is making the same artefact; or
            the disk fails.
    """
    check_folder_free(target, force=force)
    partial = _partial_of(target)
    with disk.disk_failures(target), ExitStack() as locks:
        claim = _claim(partial, target, disk.make_folder, locks)
        held = [claim]
        try:
            check_folder_free(target, force=force)  # what a killed run had set aside may be back in its place
            for left in partial.iterdir():
                disk.remove_tree(left)
            disk.write_bytes(partial / _OWNER, str(os.getpid()).encode())
            yield partial
            _sync_tree(partial)
            held += _held_while_replaced(target, locks)
            _put_in_place(partial, target, force=force)
        except BaseException:
            # by now the name may be another run's
            if any(_is_named(handle, partial) for handle in held):
                with suppress(OSError):
                    disk.remove_tree(partial)
            raise


def write_whole(target: Path, data: bytes, *, force: bool = False) -> None:
    """Write one file that appears whole or not at all.

    Raises:
        EnvironmentFailure: see `check_free`; or another run is writing it; or the disk fails.
    """
    if target.is_dir():
        raise EnvironmentFailure(f"{target} is a folder; choose a file name")
    check_free(target, force=force)
    replace_whole(target, data)


def replace_whole(target: Path, data: bytes) -> None:
    """Write one file, at once, over whatever file stands there.

    Raises:
        EnvironmentFailure: another run is writing it, or the disk fails.
    """
    partial = _partial_of(target)
    with disk.disk_failures(target), ExitStack() as locks:
        claim = _claim(partial, target, disk.make_file, locks)
        try:
            disk.write_bytes(partial, data)
            disk.sync(partial)
            disk.rename(partial, target)
            disk.sync(target.absolute().parent)
        except BaseException:
            if _is_named(claim, partial):
                with suppress(OSError):
                    disk.remove_tree(partial)
            raise


def _partial_of(target: Path) -> Path:
    return target.absolute().parent / f".{target.absolute().name}.partial"


def _replaced_of(partial: Path) -> Path:
    """Where the old artefact waits for a moment, on systems that cannot swap names."""
    return partial.with_suffix(".replaced")


def _claim(partial: Path, target: Path, make: Callable[[Path], None], locks: ExitStack) -> int:
    """Make the partial file or folder ours; the open handle returned holds the claim until `locks` close."""
    while True:
        with suppress(FileExistsError):
            make(partial)
        with ExitStack() as attempt:
            try:
                lock = os.open(partial, os.O_RDONLY)
            except FileNotFoundError:
                continue  # its maker finished and renamed it between our two calls
            attempt.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise EnvironmentFailure(f"{target} is being written by another run{_owner_of(partial)}") from error
            if not _is_named(lock, partial):
                continue
            if stat.S_ISDIR(os.fstat(lock).st_mode) != (make is disk.make_folder):
                disk.remove_tree(partial)  # left by a killed run that made something else of this name
                continue
            _restore(_replaced_of(partial), target)
            locks.push(attempt.pop_all())
            return lock


def _owner_of(partial: Path) -> str:
    try:
        return f" (process {int((partial / _OWNER).read_text())}); wait for it or choose another -o"
    except (OSError, ValueError):
        return "; wait for it or choose another -o"


def _is_named(handle: int, path: Path) -> bool:
    """Whether what is open has that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _restore(replaced: Path, target: Path) -> None:
    """Bring back, or clear, what a run that was killed while it replaced `target` had set aside."""
    if not os.path.lexists(replaced):
        return
    if os.path.lexists(target):
        disk.remove_tree(replaced)
    else:
        disk.rename(replaced, target)


def _sync_tree(folder: Path) -> None:
    """Wait until all is on the disk; the owner's mark goes last, so that others learn whom they wait for."""
    for path in sorted(folder.rglob("*")):
        if path.name != _OWNER:
            disk.sync(path)
    disk.remove_tree(folder / _OWNER)
    disk.sync(folder)


def _held_while_replaced(target: Path, locks: ExitStack) -> list[int]:
    """Claim the folder that is to be replaced: for a moment it bears the partial name, which another run may want."""
    if target.is_symlink() or not target.is_dir():
        return []
    handle = os.open(target, os.O_RDONLY)
    locks.callback(os.close, handle)
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return [handle]


def _put_in_place(partial: Path, target: Path, *, force: bool) -> None:
    """Name the finished folder; what it replaces is never missing in between where the system can swap names."""
    if not os.path.lexists(target):
        disk.rename(partial, target)
    elif not force:
        raise EnvironmentFailure(f"{target} appeared while this run was working; nothing was replaced")
    elif disk.exchange(partial, target):
        disk.remove_tree(partial)
    else:
        replaced = _replaced_of(partial)
        disk.rename(target, replaced)
        try:
            disk.rename(partial, target)
        except BaseException:
            disk.rename(replaced, target)
            raise
        disk.remove_tree(replaced)
    disk.sync(target.absolute().parent)
