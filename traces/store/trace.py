"""Traces on disk: Parquet parts in time order, checksums verified."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.engines.registry import assumed_keys
from adapt.core.errors import UsageError
from adapt.core.reading import Reading
from adapt.core.stream import KeyType
from adapt.core.table import Tabular
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.location import location, of_size
from adapt.traces.locations.run_folders import MANIFEST, RUN
from adapt.traces.read_errors import damaged
from adapt.traces.store.manifest import Manifest, file_entry, read_manifest, verify

PARTITION = "partition"
"""Column of the partition of a topic that a row lies in."""

BLOCK_ROWS = 1 << 20
"""Work over a trace is cut into blocks of this many rows, independent of files."""

ROW_GROUP_ROWS = 1 << 18

_TAIL_BYTES = 1 << 14
"""Bytes at the end of a part that hold most footers."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of rows in one row group."""

    path: Path  # the Parquet part
    footer: str  # SHA-256 of the part's footer
    row_group: int
    skip: int  # skip, take: rows to skip, rows to read
    take: int
    packed_footer: str = ""  # the part's footer in a store, which spares a request for it; else empty


@dataclass(frozen=True, slots=True)
class TraceBlock:
    """A range of rows: block i begins at row i * BLOCK_ROWS."""

    index: int
    pieces: tuple[Piece, ...]  # the row groups with the rows, in order
    first_row: int  # the rank of its first row

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(piece.take for piece in self.pieces)


@dataclass(frozen=True, slots=True, repr=False)
class Trace(Tabular):
    """An opened trace: manifest read, file sizes checked.

    Attributes:
        path: The artefact's folder.
        manifest: How it was made, and its content.
    """

    path: Path
    manifest: Manifest

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.manifest.summary["rows"])

    @property
    def first_us(self) -> int:
        """The time of the first row, in microseconds since 1970.

        Raises:
            UsageError: the trace has no times.
        """
        self._check_times(("ts",))
        return int(self.manifest.summary["first_us"])

    @property
    def last_us(self) -> int:
        """Time of the last row, in microseconds since 1970."""
        self._check_times(("ts",))
        return int(self.manifest.summary["last_us"])

    @property
    def key_type(self) -> KeyType:
        """The type of the keys in their source."""
        return KeyType(self.manifest.summary["key_type"])

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns or expressions of the source that make the key."""
        return tuple(self.manifest.summary.get("key_columns", ()))

    def _check_times(self, columns: Sequence[str]) -> None:
        if "ts" in columns and "ts" not in self.columns:
            raise UsageError(
                f"{self.path} has no times, which this needs; ingest the source with --time, or count its keys alone"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.manifest.summary["columns"])

    @property
    def profile(self) -> dict[str, Any]:
        """Measurements of the ingest; see `adapt.traces.ingest.profile`."""
        return {**self.manifest.summary["profile"], "key_type": self.key_type}

    @property
    def reading(self) -> Reading:
        """How its source was read."""
        return self.manifest.reading

    @property
    def as_input(self) -> dict[str, Any]:
        """The trace as an input in the manifest of a derived artefact."""
        return self.manifest.as_input(self.path.name)

    def __repr__(self) -> str:
        keys = self.profile["distinct_keys"]
        if "ts" not in self.columns:
            return f"Trace({self.path}: {self.rows:,} rows, about {keys:,.0f} keys, without times)"
        first, last = (datetime.fromtimestamp(each // 1_000_000, UTC) for each in (self.first_us, self.last_us))
        return f"Trace({self.path}: {self.rows:,} rows, about {keys:,.0f} keys, {first:%F %T} to {last:%F %T} UTC)"

    def to_arrow(self) -> pa.Table:
        """All rows in time order, in memory."""
        return pa.Table.from_batches(self.batches())

    def blocks(self) -> list[TraceBlock]:
        """The blocks of the trace, the unit of work of Spark tasks."""
        return blocks_of(self.path / self.manifest.run, self.manifest.files)

    def batches(self, columns: Sequence[str] | None = None, encoded: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """The rows in time order, one row group at a time.

        Args:
            columns: Names; all by default.
            encoded: Text or binary columns to keep dictionary-encoded.

        Raises:
            BadInput: a part is damaged; the message names it.
            UsageError: times are asked of a trace without.
        """
        names = list(self.columns if columns is None else columns)
        self._check_times(names)
        for block in self.blocks():
            yield from read_pieces(block.pieces, names, encoded)


def open_trace(path: Path | str, *, check_all: bool = False) -> Trace:
    """Open a trace.

    Args:
        check_all: Verify the SHA-256 of every file, not only sizes (and page checksums on reading).

    Raises:
        BadInput: it is not a trace, or damaged.
    """
    path = location(path)
    manifest = read_manifest(path, "trace")
    if check_all:
        verify(path, manifest)
    return Trace(path, manifest)


def part_entry(folder: Path, part: Path) -> dict[str, Any]:
    """The manifest entry of a part, with row groups and footer hash."""
    footer = _footer(part)
    metadata = _metadata(footer)
    groups = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    entry = file_entry(folder, part)
    if folder.name.startswith(RUN):
        entry["packed_footer"] = b64encode(zlib.compress(footer)).decode()
    return {**entry, "rows": sum(groups), "row_groups": groups, "footer": sha256(footer).hexdigest()}


def blocks_of(folder: Path, files: Sequence[Any]) -> list[TraceBlock]:
    """Cut the rows of a trace into blocks, with absolute paths."""
    folder = folder.absolute()
    blocks: list[TraceBlock] = []
    pieces: list[Piece] = []
    free = BLOCK_ROWS
    for entry in files:
        part = of_size(folder / entry["name"], entry["bytes"])
        for number, rows in enumerate(entry.get("row_groups", ())):
            skip = 0
            while skip < rows:
                take = min(free, rows - skip)
                pieces.append(Piece(part, entry["footer"], number, skip, take, entry.get("packed_footer", "")))
                skip += take
                free -= take
                if free == 0:
                    blocks.append(TraceBlock(len(blocks), tuple(pieces), len(blocks) * BLOCK_ROWS))
                    pieces, free = [], BLOCK_ROWS
    if pieces:
        blocks.append(TraceBlock(len(blocks), tuple(pieces), len(blocks) * BLOCK_ROWS))
    return blocks


def blocks_from(blocks: Sequence[TraceBlock], first_row: int) -> list[TraceBlock]:
    """The blocks from a row on; blocks keep their numbers."""
    left: list[TraceBlock] = []
    for block in blocks:
        over = max(first_row - block.first_row, 0)
        if over >= block.rows:
            continue
        pieces: list[Piece] = []
        passed = over
        for piece in block.pieces:
            skip = min(passed, piece.take)
            passed -= skip
            if skip < piece.take:
                pieces.append(replace(piece, skip=piece.skip + skip, take=piece.take - skip))
        left.append(TraceBlock(block.index, tuple(pieces), block.first_row + over))
    return left


def read_pieces(
    pieces: Sequence[Piece], columns: Sequence[str], encoded: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Read pieces in order, one batch each, and verify page checksums.

    Args:
        encoded: Columns to keep dictionary-encoded where they are stored so; a piece may then give several batches,
            each with its own dictionary.
    """
    opened: tuple[Path, pq.ParquetFile] | None = None
    for piece in pieces:
        try:
            if opened is None or opened[0] != piece.path:
                packed = piece.packed_footer
                footer = zlib.decompress(b64decode(packed)) if packed else _footer(piece.path)
                if sha256(footer).hexdigest() != piece.footer:
                    raise OSError("its footer does not match the manifest")
                file = pq.ParquetFile(
                    arrow_source(piece.path),
                    metadata=_metadata(footer),
                    page_checksum_verification=True,
                    pre_buffer=False,
                    read_dictionary=list(encoded),
                )
                opened = (piece.path, file)
            table = opened[1].read_row_group(piece.row_group, columns=list(columns), use_threads=False)
            if table.num_rows < piece.skip + piece.take:
                raise OSError(f"row group {piece.row_group} has only {table.num_rows:,} rows")
        except (OSError, pa.ArrowException, ValueError, zlib.error) as error:
            raise damaged(piece.path, error, "restore the file, or ingest the trace again") from error
        part = table.slice(piece.skip, piece.take)
        yield from (part if encoded else part.combine_chunks()).select(list(columns)).to_batches()


def _metadata(footer: bytes) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(b"PAR1" + footer))


def _footer(part: Path) -> bytes:
    """A Parquet footer, which no page checksum covers."""
    size = part.stat().st_size
    with part.open("rb", 0) as file:
        file.seek(-min(_TAIL_BYTES, size), 2)
        tail: bytes = file.read()
        own = min(8 + int.from_bytes(tail[-8:-4], "little"), size)
        if own > len(tail):
            file.seek(-own, 2)
            tail = file.read()
    return tail[-own:]


def note_on_keys(source: Path, scheme: AnyScheme) -> str:
    """Type by which keys are placed, and whose placement is judged."""
    if not isinstance(scheme, Engine) or not (source / MANIFEST).is_file():
        return ""
    manifest = read_manifest(source)
    key_type = manifest.summary.get("key_type")
    if key_type is None:
        return ""
    is_trace = manifest.kind == "trace"
    trace = manifest.summary if is_trace else manifest.made.parameters.get("of_trace", {})
    notes = [assumed_keys(scheme, KeyType(key_type))]
    if "key_columns" not in trace and (is_trace or manifest.made.inputs) and key_type != KeyType.BINARY:
        wide = "narrower integers" if key_type == KeyType.INT64 else "dates, times and decimals"
        kept = "is" if is_trace else "counts a trace"
        notes = [
            f"{source} {kept} of the first format, which did not keep the type of keys: {scheme} places them as"
            f" {key_type}; if the source has {wide}, ingest it again"
        ]
    if not is_trace and PARTITION in trace.get("columns", ()):
        notes.append(
            f"judged: the placement of {scheme}, not the partitions that {source} does not hold; for those of the"
            " topic, give its trace to `adapt verdict`"
        )
    return "; ".join(filter(None, notes))
