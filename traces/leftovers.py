"""Leftovers of interrupted runs, on a disk and in a store."""

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.core.table import Column, Kind, Table
from adapt.traces.block_cache import CACHE
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import StorePath, is_stored
from adapt.traces.locations.run_folders import RUN, run_of
from adapt.traces.read_errors import readable
from adapt.traces.store.disk import disk_failures, remove_tree
from adapt.traces.store.plans import named_side, plan_of_side

_HIDDEN = {
    ".partial": "unfinished output",
    ".replaced": "output that was being overwritten",
    ".scenarios": "finished scenarios of a comparison",
}
"""What a hidden entry of a disk or store is, by its suffix."""

UNUSED_S = 30 * 86_400.0
"""Seconds from which kept results count as leftovers, if no run reads them."""

_RESULTS = frozenset({".block", ".cells", ".freq", ".loads", ".panes", ".profile", ".source"})
"""Suffixes of kept results."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """What an interrupted run left."""

    path: Path  # a folder or file
    about: str  # its kind, in words
    files: int  # files, size: number of files, and their bytes
    size: int
    age_s: float  # seconds since the last of them was written, or kept results were read

    def remove(self) -> None:
        """Remove it."""
        with disk_failures(self.path), ExitStack() as locks:
            if not is_stored(self.path) and _is_locked(self.path, locks):
                raise EnvironmentFailure(f"{self.path} is being written by another run; wait for it")
            if is_stored(self.path) and self.path.is_file():
                self.path.unlink()
            else:
                remove_tree(self.path)


def leftovers(place: Path) -> list[Leftover]:
    """Leftovers in a folder or of one artefact.

    In a store also those in folders below; on a disk also kept results. Outputs that a run of this machine has locked
    are not among them; in a store only their age says whether a run is still writing them.
    """
    found = sorted(_stored(place) if is_stored(place) else _on_disk(place.absolute()), key=lambda each: each.path)
    if not found and not place.exists():
        raise BadInput(f"{place} does not exist; give a folder with artefacts, or an artefact")
    return found


def table_of(found: Sequence[Leftover]) -> Table:
    """Leftovers as a table."""
    columns = (
        Column("path"),
        Column("about"),
        Column("files", Kind.COUNT),
        Column("size", Kind.BYTES),
        Column("age", Kind.SECONDS, about="since the last file was written, or kept results were read"),
    )
    rows = [(str(each.path), each.about, each.files, each.size, each.age_s) for each in found]
    return Table.from_rows("Leftovers", columns, rows)


def _stored(place: StorePath) -> Iterator[Leftover]:
    """Run folders that no manifest names, hidden entries, and pinned keys that no plan names."""
    near = list(place.parent.iterdir()) if place.key else []
    beside = [each for each in near if _is_of(each.name, place.name)]
    held: dict[StorePath, list[StorePath]] = {}
    sides = [each for each in near if plan_of_side(each.name) == place.name]
    for each in (path for folder in (place, *beside) for path in folder.rglob("*")):
        names = each.relative_to(place.parent if place.key else place).parts
        at = next((at for at, name in enumerate(names) if name.startswith(RUN) or _kind(name)), None)
        if at is not None:
            held.setdefault(_above(each, len(names) - 1 - at), []).append(each)
        elif plan_of_side(each.name):
            sides.append(each)
    for folder, files in held.items():
        if folder.name.startswith(RUN) and run_of(folder.parent) == folder.name:
            continue
        facts = [each.found() for each in files]
        age = time.time() - max(fact.modified_ns for fact in facts) / 1e9
        about = _kind(folder.name) or "parts without a manifest"
        yield Leftover(cast(Path, folder), about, len(files), sum(fact.size for fact in facts), max(0.0, age))
    for side in filter(_is_unnamed, sides):
        fact = side.found()
        age = max(0.0, time.time() - fact.modified_ns / 1e9)
        yield Leftover(cast(Path, side), "pinned keys that no plan names", 1, fact.size, age)


def _is_unnamed(side: StorePath) -> bool:
    """Whether a file holds pinned keys for a plan that is not there or names another."""
    try:
        if named_side(side.with_name(plan_of_side(side.name))) == side.name:
            return False
        return bool(pq.read_schema(arrow_source(cast(Path, side))).names == ["key", "channel"])
    except (ValueError, pa.ArrowException):  # not ours
        return False


def _on_disk(place: Path) -> Iterator[Leftover]:
    """Hidden entries in a folder, and those of an artefact, without a lock."""
    with readable(place):
        near = [each for each in place.parent.glob(".*") if _is_of(each.name, place.name)] if place.name else []
        inside = list(place.glob(".*")) if place.is_dir() else []
        cache = place if place.name == CACHE else place / CACHE
        kept = list(cache.iterdir()) if cache.is_dir() and not cache.is_symlink() else []
        hidden = [each for each in dict.fromkeys((*near, *inside, *kept)) if _kind(each.name) and not _is_locked(each)]
        yield from (_leftover(path, _kind(path.name)) for path in hidden)
        unused = (_leftover(path, "unused results") for path in kept if path.suffix in _RESULTS)
        yield from (each for each in unused if each.age_s >= UNUSED_S)


def _leftover(path: Path, about: str) -> Leftover:
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    facts = [each.lstat() for each in (*files, path)]
    age = time.time() - max(fact.st_mtime for fact in facts)
    return Leftover(path, about, len(files), sum(fact.st_size for fact in facts[: len(files)]), max(0.0, age))


def _kind(name: str) -> str:
    """What a hidden entry is; empty for others."""
    return _HIDDEN.get(Path(name).suffix, "") if name.startswith(".") and name.count(".") > 1 else ""


def _is_of(name: str, artefact: str) -> bool:
    """Whether a hidden entry belongs to this artefact."""
    return any(name == f".{artefact}{suffix}" for suffix in _HIDDEN)


def _above(path: StorePath, levels: int) -> StorePath:
    for _ in range(levels):
        path = path.parent
    return path


def _is_locked(path: Path, locks: ExitStack | None = None) -> bool:
    """Whether a run holds the lock of its output; else it is locked until `locks` close."""
    with ExitStack() as attempt:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            attempt.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a link, or gone
            return False
        if locks is not None:
            locks.push(attempt.pop_all())
    return False
