"""Runs: sorted rows of a trace with their places."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.traces.store import disk

RUN_BYTES = 64 << 20
"""Approximate size of a run, which a task sorts in memory."""

SUFFIX = ".arrow"

FIRST_LINE = b"first_line"
"""Metadata of a run."""

MIXED = "mixed"
"""Beginning of the names of runs whose places are not in the order of the names."""


@dataclass(frozen=True)
class Run:
    """A run on disk, mapped into memory.

    Attributes:
        path: Its file.
    """

    path: Path

    @cached_property
    def rows(self) -> pa.RecordBatch:
        """Its rows: `_file`, `_line`, then the columns of the trace."""
        return self._read.replace_schema_metadata()

    @cached_property
    def _read(self) -> pa.RecordBatch:
        return pa.ipc.open_file(pa.memory_map(str(self.path))).get_batch(0)

    @cached_property
    def order(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """Time in microseconds, file and line of each row; rows rise."""
        rows = self.rows
        times = rows.column("ts").view(pa.int64())
        return times.to_numpy(), rows.column("_file").to_numpy(), rows.column("_line").to_numpy()

    @property
    def first_line(self) -> int:
        """The lowest line of its rows."""
        return int(self._read.schema.metadata[FIRST_LINE])

    @property
    def mixed(self) -> bool:
        """Whether the source may have rows of others between its own."""
        return self.path.name.startswith(MIXED)

    def before(self, time: int, file: int, line: int, low: int, high: int) -> int:
        """Number of rows before a place, known to be in [low, high]."""
        times, files, lines = self.order
        for values, value in ((times, time), (files, file)):
            first = low + int(np.searchsorted(values[low:high], value, "left"))
            high = low + int(np.searchsorted(values[low:high], value, "right"))
            low = first
            if low == high:
                return low
        return low + int(np.searchsorted(lines[low:high], line, "left"))


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

    def __init__(self, folder: Path, name: str, attempt: int) -> None:
        """Write runs into a folder.

        Args:
            name: Beginning of the names of the files.
            attempt: The number of the attempt of the task.
        """
        self._folder, self._name, self._attempt = folder, name, attempt
        self._held: list[pa.RecordBatch] = []
        self._size = self._number = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows, in the order of the source or of the trace."""
        self._held.append(rows)
        self._size += rows.nbytes
        if self._size >= RUN_BYTES:
            self.close()

    def close(self) -> None:
        """Write what is held."""
        if sum(map(len, self._held)):
            rows = pa.concat_batches(self._held)
            order = rising(rows.column("ts").view(pa.int64()).to_numpy())
            first = str(pc.min(rows.column("_line")).as_py())
            rows = rows.take(pa.array(order)).replace_schema_metadata({FIRST_LINE: first})
            path = self._folder / f"{self._name}-{self._number:06d}{SUFFIX}"
            with disk.complete_file(path, self._attempt) as own, pa.ipc.new_file(str(own), rows.schema) as writer:
                writer.write_batch(rows)
            self._number += 1
        self._held, self._size = [], 0
