"""Sorted runs of rows, merged into parts at exact ranks."""

from collections.abc import Iterator, Sequence
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
from adapt.traces.ingest.profile import TOLD, Profile, Profiler
from adapt.traces.ingest.sieve import PLACES
from adapt.traces.ingest.time_sort import lines_looked_at
from adapt.traces.parts import part_name, part_writer, remove_unfinished
from adapt.traces.spark.lazy import SparkSession
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.runner import BlockRows, InProcessRunner, attempt_id, in_tasks, shared_out
from adapt.traces.spark.session import spark_failures
from adapt.traces.store import disk
from adapt.traces.store.trace import BLOCK_ROWS, ROW_GROUP_ROWS

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
            times = order_of(rows)[0]
            if self._mixed or (times[1:] < times[:-1]).any():
                order = np.lexsort(order_of(rows)[::-1]) if self._mixed else rising(times)
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


Positions: TypeAlias = NDArray[np.int64]
"""A position in each run; shape (runs,)."""

PROBES = 16
"""Rows of each run that one round of narrowing looks at."""

FEW = 1 << 14
"""Rows that are sorted rather than narrowed."""


def cut(runs: Sequence[Run], rank: int, low: Positions, high: Positions) -> Positions:
    """Cuts of each run at a rank.

    The rows before the cuts are the first `rank` of all.

    Args:
        low, high: Bounds of the cuts; all rows before `low` are among the first, none from `high` on.
    """
    while rank < high.sum() and high.sum() - low.sum() > FEW:
        narrowed = _narrowed(runs, rank, low, high)
        if np.array_equal(narrowed[0], low) and np.array_equal(narrowed[1], high):
            break
        low, high = narrowed
    if rank >= high.sum():
        return high
    places = [np.arange(first, end) for first, end in zip(low.tolist(), high.tolist(), strict=True)]
    return _cuts_before(runs, _ordered(runs, places)[0][:, rank - int(low.sum())], low, high)


def _narrowed(runs: Sequence[Run], rank: int, low: Positions, high: Positions) -> tuple[Positions, Positions]:
    """Closer bounds, found from some rows of each run."""
    places = [_probes(first, end) for first, end in zip(low.tolist(), high.tolist(), strict=True)]
    probes, whose = _ordered(runs, places)
    weights = (high - low) / np.maximum([len(rows) for rows in places], 1)
    # about how many rows are before each probe, and by how many that may be wrong
    before = np.cumsum(weights[whose]) - weights[whose] / 2
    slack = np.sqrt((weights**2).sum()) * 2
    wanted = rank - low.sum()
    under, over = np.searchsorted(before, wanted - slack) - 1, np.searchsorted(before, wanted + slack)
    if under >= 0:
        found = _cuts_before(runs, probes[:, under], low, high)
        low, high = (found, high) if found.sum() <= rank else (low, found)
    if over < probes.shape[1]:
        found = _cuts_before(runs, probes[:, over], low, high)
        low, high = (low, found) if found.sum() >= rank else (found, high)
    return low, high


def _probes(low: int, high: int) -> Positions:
    """Some rows of a range, those of the index if it is long."""
    width = high - low
    if width > 2 * INDEX_ROWS:
        return np.arange(-(-low // INDEX_ROWS) * INDEX_ROWS, high, INDEX_ROWS)
    count = min(PROBES, width)
    return low + width * (2 * np.arange(count) + 1) // (2 * max(count, 1))


def _ordered(runs: Sequence[Run], places: Sequence[Positions]) -> tuple[NDArray[np.int64], Positions]:
    """Time, file and line of some rows of each run in order, and the run of each; shapes (3, rows), (rows,)."""
    asked = [(at, run, rows) for at, (run, rows) in enumerate(zip(runs, places, strict=True)) if len(rows)]
    keys = np.concatenate([_order_at(run, rows) for _, run, rows in asked], axis=1)
    whose = np.repeat([at for at, _, _ in asked], [len(rows) for _, _, rows in asked])
    order = np.lexsort(keys[::-1])
    return keys[:, order], whose[order]


def _order_at(run: Run, rows: Positions) -> NDArray[np.int64]:
    """Time, file and line of some rows; shape (3, rows)."""
    indexed = not (rows % INDEX_ROWS).any()
    order, at = (run.index, rows // INDEX_ROWS) if indexed else (run.order, rows)
    return np.stack([np.int64(column[at]) for column in order])


def _cuts_before(runs: Sequence[Run], place: NDArray[np.int64], low: Positions, high: Positions) -> Positions:
    bounds = zip(runs, low.tolist(), high.tolist(), strict=True)
    return np.array([run.before(place.tolist(), first, end) for run, first, end in bounds], np.int64)


def merge_runs(
    spark: SparkSession | None, runs: Sequence[Run], schema: pa.Schema, folder: Path, progress: Progress
) -> Profile:
    """Write all runs as parts of `BLOCK_ROWS`, and profile them.

    Without Spark, in this process.

    Args:
        schema: Schema of the trace.
    """
    rows = sum(len(run.rows) for run in runs)
    times = [run.order[0] for run in runs]
    span_us = (min(int(each[0]) for each in times), max(int(each[-1]) for each in times))
    profiler = Profiler.over(span_us, rows, schema)
    paths = [run.path for run in runs]

    def merge(part: int) -> Iterator[pa.RecordBatch]:
        first, end = part * BLOCK_ROWS, min(rows, (part + 1) * BLOCK_ROWS)
        groups = _merged([Run(path) for path in paths], first, end, schema)
        with disk.complete_file(folder / part_name(part), attempt_id()) as path, part_writer(schema, path) as writer:

            def written() -> Iterator[pa.RecordBatch]:
                for group in groups:
                    writer.write_batch(group)
                    yield group

            told = profiler.as_row(part, first, written())
        yield told

    blocks = -(-rows // BLOCK_ROWS)
    if spark is None:
        return profiler.collected(InProcessRunner(progress).rows(BlockRows("sorting by time", blocks, merge, TOLD)))
    with spark_failures("sorting by time"), watched(spark, "sorting by time", progress):
        profile = profiler.reduced(in_tasks(spark, shared_out(spark, blocks), merge, TOLD), blocks)
        remove_unfinished(folder)
        return profile


def _merged(runs: Sequence[Run], first: int, end: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows from rank `first` to `end` of all runs, a row group at a time."""
    whole = np.array([len(run.rows) for run in runs], np.int64)
    low = cut(runs, first, np.zeros(len(runs), np.int64), whole)
    last = cut(runs, end, low, whole)
    for rank in range(first, end, ROW_GROUP_ROWS):
        high = cut(runs, min(end, rank + ROW_GROUP_ROWS), low, last)
        yield _in_order(runs, low, high).select(schema.names)
        low = high


def _in_order(runs: Sequence[Run], low: Positions, high: Positions) -> pa.RecordBatch:
    """The rows of a range of each run, in order."""
    ranges = zip(runs, low.tolist(), high.tolist(), strict=True)
    taken = [(run, first, end - first) for run, first, end in ranges if first < end]
    rows = pa.concat_batches([run.rows.slice(first, count) for run, first, count in taken])
    if len(taken) == 1:
        return rows
    times = rows.column("ts").view(pa.int64()).to_numpy()
    if any(run.mixed for run, _, _ in taken):
        order = np.lexsort((*(rows.column(name).to_numpy() for name in reversed(PLACES)), times))
    else:
        order = rising(times)  # the runs are in the order of the source
    return rows.take(pa.array(order))
