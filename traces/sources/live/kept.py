"""Records of a topic on disk, one file per partition.

A later run may extend them.

A file is a sequence of frames: a header of four integers (bytes, rows, first and last offset) and a checksum of both,
then an Arrow stream. From a frame on that a killed run has cut off, or that was changed, all is dropped and read again.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

HEADER = struct.Struct("<4q32s")

FLUSH_ROWS = 1 << 16
FLUSH_BYTES = 16 << 20
"""Records that are held in memory before they are written."""

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class Frame:
    """Records of one partition that were written together."""

    at: int  # first byte of its data in the file
    size: int  # bytes of its data
    rows: int  # number of records
    first: int  # offset of the first record
    last: int  # offset of the last one
    digest: bytes = b""  # checksum of its data and these numbers

    def is_whole(self, file: IO[bytes]) -> bool:
        """Whether it is as it was written."""
        file.seek(self.at)
        return _digest(file.read(self.size), self.rows, self.first, self.last) == self.digest

    def table(self, file: IO[bytes]) -> pa.Table:
        """The records."""
        file.seek(self.at)
        with pa.ipc.open_stream(file.read(self.size)) as stream:
            return stream.read_all()


def frames_of(path: Path, begin: int = 0, size: int | None = None) -> Iterator[Frame]:
    """The whole frames in a range of a file, in order.

    Args:
        size: Bytes of the range; None up to the end.
    """
    end = path.stat().st_size if size is None else begin + size
    with path.open("rb") as file:
        at = begin + HEADER.size
        while at <= end:
            file.seek(at - HEADER.size)
            frame = Frame(at, *HEADER.unpack(file.read(HEADER.size)))
            if frame.size < 0 or frame.at + frame.size > end:
                return
            yield frame
            at = frame.at + frame.size + HEADER.size


class RecordFiles:
    """Files of the partitions in one folder, to which records are added."""

    def __init__(self, folder: Path) -> None:
        """Take up the files of a folder; a frame that was cut off is dropped."""
        self.folder = folder
        self._held: list[pa.RecordBatch] = []
        self.rows = 0
        self.last: dict[int, int] = {}
        for path in folder.glob("*.records"):
            end = 0
            with path.open("rb") as file:
                for frame in frames_of(path):
                    if not frame.is_whole(file):
                        break
                    end = frame.at + frame.size
                    self.rows += frame.rows
                    self.last[int(path.stem)] = frame.last
            os.truncate(path, end)

    def path(self, partition: int) -> Path:
        """The file of a partition."""
        return self.folder / f"{partition:06d}.records"

    def add(self, records: pa.RecordBatch) -> None:
        """Add records, to be written later.

        Args:
            records: With the columns `partition` and `offset`; each partition is in the order of offsets.
        """
        self._held.append(records)
        rows, size = (sum(counts) for counts in zip(*((len(each), each.nbytes) for each in self._held), strict=True))
        if rows >= FLUSH_ROWS or size >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        held = pa.Table.from_batches(self._held).combine_chunks() if self._held else None
        self._held = []
        if held is None or not len(held):
            return
        partitions = held["partition"].to_numpy()
        order = np.argsort(partitions, kind="stable")
        ordered, counts = held.take(pa.array(order)), np.bincount(partitions)
        begins = np.cumsum(counts) - counts
        for partition in np.flatnonzero(counts).tolist():
            self._append(partition, ordered.slice(begins[partition], counts[partition]))

    def _append(self, partition: int, records: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, records.schema, options=_LZ4) as stream:
            stream.write_table(records)
        data = sink.getvalue()
        first, last = (int(records["offset"][row].as_py()) for row in (0, -1))
        with self.path(partition).open("ab") as file:
            file.write(HEADER.pack(len(data), len(records), first, last, _digest(data, len(records), first, last)))
            file.write(data)
        self.rows += len(records)
        self.last[partition] = last


def _digest(data: Any, *numbers: int) -> bytes:
    digest = sha256(struct.pack(f"<{len(numbers)}q", *numbers))
    digest.update(data)
    return digest.digest()


def stored(names: Sequence[str]) -> pa.Schema:
    """Columns of the files, with the wanted parts of records."""
    parts = {"headers": pa.string(), "payload": pa.binary()}
    return pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("ts", pa.timestamp("ms", "UTC")),
            ("key", pa.binary()),
            ("payload_size", pa.int32()),
            *((name, parts[name]) for name in parts if name in names),
        ]
    )
