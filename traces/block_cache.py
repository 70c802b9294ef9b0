"""Results kept next to a trace, or for blocks of a series."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.errors import EnvironmentFailure
from adapt.core.units.seals import hash_of
from adapt.traces.locations.location import is_stored
from adapt.traces.locations.series_path import SeriesPath
from adapt.traces.store.atomic import replace_whole
from adapt.traces.store.manifest import program_versions
from adapt.traces.store.tables import packed
from adapt.traces.store.trace import BLOCK_ROWS, TraceBlock

CACHE = ".adapt-counts"
"""The cache folder next to a trace; it can be deleted at any time."""

_NOWHERE = Path(os.devnull) / CACHE
"""Can neither be read nor made."""

_DIGEST = sha256().digest_size

Work: TypeAlias = Callable[[int], Iterator[pa.RecordBatch]]

Decisive: TypeAlias = Callable[[TraceBlock], Any]
"""What decides the rows of a block besides its content, as plain data; None if they are not kept."""


def cache_of(path: Path | SeriesPath) -> Path:
    """The cache folder next to a trace; a link is not followed."""
    folder = path.absolute().parent / CACHE
    return _NOWHERE if folder.is_symlink() else folder


def make_cache(folder: Path) -> None:
    """Create a cache folder unless it is there."""
    if folder == _NOWHERE:
        raise EnvironmentFailure(f"{CACHE} next to the trace must be a folder (got a symbolic link); remove the link")
    folder.mkdir(exist_ok=True)


def kept_blocks(
    path: Path, files: Sequence[Mapping[str, Any]], blocks: Sequence[TraceBlock], work: Work, decisive: Decisive
) -> Work:
    """Work on the blocks of a series, with results kept.

    So a new day costs a day. Blocks begin at fixed rows of the stream, so those before a new trace stay as they are.
    Only full blocks are kept, as the last one grows. One trace does not grow: of it, nothing is kept here.

    Args:
        path: Of the trace or series.
        files: Of its manifest.
        work: The rows of a block, given its place in `blocks`.
    """
    if not isinstance(path, SeriesPath):
        return work
    series = path.absolute()
    folder = cache_of(series)
    digests: dict[Any, str] = {series / str(each["name"]): each["sha256"] for each in files}
    paths: list[Path | None] = []
    for block in blocks:
        decided = decisive(block) if block.rows == BLOCK_ROWS else None
        rows = [[digests[piece.path], piece.row_group, piece.skip, piece.take] for piece in block.pieces]
        name = hash_of([program_versions()["adapt-streams"], decided, block.index, rows])[:32]
        paths.append(None if decided is None else folder / f"{name}.block")
    kept: set[str] = set()
    with suppress(EnvironmentFailure, OSError):
        make_cache(folder)
        kept = {each.name for each in folder.iterdir()}
    held = [path is not None and path.name in kept for path in paths]
    return partial(_kept_or_made, work, paths, held)


def rows_held(blocks: Sequence[TraceBlock], most: Callable[[TraceBlock], int], together: int | None = None) -> int:
    """Rows of results in one process; they decide where work runs.

    Args:
        most: Rows that the result of a block has at most.
        together: Rows of all results added up, at most; None if they are not added up on the way.
    """
    apart = sum(min(block.rows, most(block)) for block in blocks)
    return apart if together is None else min(apart, together + BLOCK_ROWS)


def _kept_or_made(
    work: Work, paths: Sequence[Path | None], held: Sequence[bool], place: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a block, read where they are kept, else made and kept."""
    path = paths[place]
    rows = read_kept(path) if path is not None and held[place] else None
    if rows is None:
        batches = list(work(place))
        if path is not None and batches:
            keep(path, pa.Table.from_batches(batches))
        yield from batches
    else:
        yield from rows.to_batches()


def read_kept(path: Path) -> pa.Table | None:
    """A kept table; None if missing or damaged."""
    data = read_kept_bytes(path)
    if data is None:
        return None
    try:
        # pq.read_table would import pandas, which takes longer than the rest.
        return pq.ParquetFile(pa.BufferReader(data)).read()
    except (OSError, pa.ArrowException):
        return None


def read_kept_bytes(path: Path) -> bytes | None:
    """What `keep_bytes` kept; None if missing, damaged or no plain file."""
    try:
        if is_stored(path):
            raw = path.read_bytes()
        else:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                raw = file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return None
    if sha256(raw[_DIGEST:]).digest() != raw[:_DIGEST]:
        return None
    note_use(path)
    return raw[_DIGEST:]


def keep_bytes(path: Path, data: bytes) -> None:
    """Keep a result with its checksum, if its folder can be written."""
    with suppress(EnvironmentFailure, OSError):
        make_cache(path.parent)
        replace_whole(path, sha256(data).digest() + data)


def note_use(path: Path) -> None:
    """Note when kept results were read last.

    On a disk, for `adapt clean`.
    """
    if not is_stored(path):
        with suppress(OSError):
            os.utime(path, follow_symlinks=False)


def keep(path: Path, table: pa.Table) -> None:
    """Keep a table if its folder can be written."""
    keep_bytes(path, packed(table))
