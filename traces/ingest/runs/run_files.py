"""Runs: sorted rows of a trace, and their merge."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.names import HashName
from adapt.core.keys.xxhash64 import SEED
from adapt.core.lint.source_order import MOST_ROWS, source_evidence
from adapt.traces.ingest.runs.sieve import PLACES
from adapt.traces.ingest.time_sort import lines_looked_at
from adapt.traces.store import disk

RUN_BYTES = 64 << 20
"""Approximate size of a run, which a task sorts in memory."""

SUFFIX = ".arrow"

FIRST_LINE, INDEX = b"first_line", b"index"
"""Metadata of a run."""

INDEX_ROWS = 4096
"""The index of a run has the order of one row in this many, so that few pages of a long one are read."""

Order: TypeAlias = tuple[NDArray[np.int64], NDArray[np.integer[Any]], NDArray[np.int64]]
"""Time in microseconds, file and line of some rows."""

MIXED = "mixed"
"""Beginning of the names of runs whose places are not in the order of the names."""


@dataclass(frozen=True)
class Run:
    """A run on disk, mapped into memory."""

    path: Path  # its file

    @cached_property
    def rows(self) -> pa.RecordBatch:
        """Its rows: `_file`, `_line`, then the columns of the trace."""
        return self._read.replace_schema_metadata()

    @cached_property
    def _read(self) -> pa.RecordBatch:
        with pa.memory_map(str(self.path)) as file:  # closed, since there may be thousands; the rows stay mapped
            return pa.ipc.open_file(file).get_batch(0)

    @cached_property
    def order(self) -> Order:
        """Time in microseconds, file and line of each row; rows rise."""
        return order_of(self.rows)

    @cached_property
    def index(self) -> Order:
        """The order of each row whose number is a multiple of `INDEX_ROWS`."""
        times, files, lines = np.frombuffer(self._read.schema.metadata[INDEX], np.int64).reshape(3, -1)
        return times, files, lines

    @property
    def first_line(self) -> int:
        """The lowest line of its rows."""
        return int(self._read.schema.metadata[FIRST_LINE])

    @property
    def mixed(self) -> bool:
        """Whether the source may have rows of others between its own."""
        return self.path.name.startswith(MIXED)

    def before(self, place: Sequence[int], low: int, high: int) -> int:
        """Number of rows before a place, known to be in [low, high]."""
        known = _before(self.index, place, 0, len(self.index[0]))
        low = max(low, (known - 1) * INDEX_ROWS)
        return _before(self.order, place, low, max(low, min(high, known * INDEX_ROWS)))


def order_of(rows: pa.RecordBatch) -> Order:
    """Time, file and line of rows."""
    times = rows.column("ts").view(pa.int64())
    return times.to_numpy(), rows.column("_file").to_numpy(), rows.column("_line").to_numpy()


def _before(order: Order, place: Sequence[int], low: int, high: int) -> int:
    """Number of rows before a place, known to be in [low, high]."""
    for values, value in zip(order, place, strict=True):
        found = values[low:high]
        high = low + int(np.searchsorted(found, value, "right"))
        low += int(np.searchsorted(found, value, "left"))
        if low == high:
            break
    return low


def runs_of(folder: Path) -> list[Run]:
    """All runs of a folder; unmixed ones in source order."""
    return [Run(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]


def rising(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order of rising times; rows of equal time keep theirs."""
    first, bits = int(times.min()), len(times).bit_length()
    if int(times.max()) - first >= 1 << 63 - bits:
        return np.argsort(times, kind="stable")
    # sorts several times faster: numbers that differ, with the row in their lowest bits
    ranked = (times - first) << bits | np.arange(len(times))
    ranked.sort()
    return ranked & (1 << bits) - 1


class RunWriter:
    """Sorts rows into runs of bounded size."""

    def __init__(self, folder: Path, name: str, attempt: int, *, mixed: bool = False) -> None:
        """Write runs into a folder.

        Args:
            name: Beginning of the names of the files.
            attempt: The number of the attempt of the task.
            mixed: Rows come in any order, rather than in that of the source.
        """
        self.written: list[Path] = []
        self._folder, self._name, self._attempt = folder, f"{MIXED}-{name}" if mixed else name, attempt
        self._mixed = mixed
        self._held: list[pa.RecordBatch] = []
        self._size = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        self._held.append(rows)
        self._size += rows.nbytes
        if self._size >= RUN_BYTES:
            self.close()

    def close(self) -> None:
        """Write what is held."""
        if sum(map(len, self._held)):
            rows = pa.concat_batches(self._held)
            order = np.lexsort(order_of(rows)[::-1]) if self._mixed else rising(order_of(rows)[0])
            rows = rows.take(pa.array(order))
            index = np.stack([np.int64(column[::INDEX_ROWS]) for column in order_of(rows)])
            first = str(pc.min(rows.column("_line")).as_py())
            rows = rows.replace_schema_metadata({FIRST_LINE: first, INDEX: index.tobytes()})
            path = self._folder / f"{self._name}-{len(self.written):06d}{SUFFIX}"
            with disk.complete_file(path, self._attempt) as own, pa.ipc.new_file(str(own), rows.schema) as writer:
                writer.write_batch(rows)
            self.written.append(path)
        self._held, self._size = [], 0


def order_of_runs(runs: Sequence[Run], files: int) -> dict[str, Any] | None:
    """As `order_of_source`, on the driver: only the first runs hold first lines."""
    lines = lines_looked_at(files)
    found = []
    for run in (Run(each.path) for each in runs):  # mapped one at a time, so that the driver holds one
        if run.first_line <= lines:
            rows = run.rows.select([*PLACES, "ts", "key"])
            first = pc.and_(pc.less_equal(rows.column("_line"), lines), pc.less(rows.column("_file"), MOST_ROWS))
            found.append(rows.filter(first))
    if not found:
        return None
    rows = pa.concat_batches(found)
    keys = HashedKeys.from_column(rows.column("key"), HashName.XXHASH64)
    hashes = keys.high.view(np.int64)
    if keys.missing is not None:
        hashes = np.where(keys.missing, np.int64(SEED), hashes)
    file, line = (rows.column(name).to_numpy().astype(np.int64) for name in PLACES)
    return source_evidence(file, line, rows.column("ts").view(pa.int64()).to_numpy(), hashes)
