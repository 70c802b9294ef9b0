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

from adapt.core.counting.tables import NULL_KEY
from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.engines.registry import assumed_keys
from adapt.core.errors import UsageError
from adapt.core.lint.evidence import LINT
from adapt.core.metrics import column_named
from adapt.core.reading import Reading
from adapt.core.stream import KeyType
from adapt.core.table import Column, Kind, Table, Tabular
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
            raise damaged(piece.path, error, "restore the file, or make it again") from error
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


def note_on_keys(source: Path, scheme: AnyScheme | None) -> str:
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


SCHEMA = "adapt.trace/1"


def trace_tables(trace: Trace) -> list[Table]:
    """The tables of a trace in a notebook: overview and top keys."""
    return [overview(trace), top_keys_table(trace)]


def overview(trace: Trace) -> Table:
    """The overview of a trace, in one row."""
    profile, summary = trace.profile, trace.manifest.summary
    timed = "ts" in trace.columns
    span_s = (trace.last_us - trace.first_us) / 1e6 if timed else 0.0
    facts = profile["facts"]
    top = profile["rank_counts"]
    cells: list[tuple[Column, Any]] = [
        (Column("trace"), trace.path.name),
        (Column("rows", Kind.COUNT), trace.rows),
        (
            column_named("rejected"),
            summary["rejects"]["rows"],
        ),
        *(_times_of(trace, span_s) if timed else []),
        (Column("keys", Kind.COUNT, about=_exactness(profile)), profile["distinct_keys"]),
        (Column("key_type"), summary["key_type"]),
        (Column("top_share", Kind.SHARE, about="share of the hottest key"), top[0] / trace.rows if top else None),
        (Column("null_keys", Kind.COUNT), facts["null_keys"]),
        (Column("empty_keys", Kind.COUNT), facts["empty_keys"]),
    ]
    if "cost_us" in profile["totals"]:
        cells.append((Column("cost_us", Kind.NUMBER, "us", "total cost"), profile["totals"]["cost_us"]))
    if "bytes" in profile["totals"]:
        cells.append((Column("bytes", Kind.BYTES, about="total size"), int(profile["totals"]["bytes"])))
    cells += _of_source(trace, span_s)
    return Table.from_rows("Trace", [column for column, _ in cells], [[cell for _, cell in cells]], _note(profile))


def _times_of(trace: Trace, span_s: float) -> list[tuple[Column, Any]]:
    """Columns about the times of a trace."""
    profile = trace.profile
    return [
        (Column("first", Kind.TIME), trace.first_us),
        (Column("last", Kind.TIME), trace.last_us),
        (Column("rows_per_s", Kind.NUMBER, "rows/s", "mean rate"), trace.rows / span_s if span_s else None),
        (
            Column("peak_rows_per_s", Kind.NUMBER, "rows/s", "rate of the busiest time bin"),
            profile["peak"]["rows"] / (profile["rates"]["width_us"] / 1e6),
        ),
    ]


def _of_source(trace: Trace, span_s: float) -> list[tuple[Column, Any]]:
    """Columns about the source of a trace that is a sample of its keys; empty without a sample."""
    sample = trace.profile.get(LINT, {}).get("sample")
    if sample is None:
        return []
    rows = trace.rows + sample["left_out"]
    top = trace.profile["rank_counts"]
    return [
        (
            Column("sample", Kind.SHARE, about="of the source's keys; the columns after it are about the source"),
            sample["share"],
        ),
        (Column("source_rows", Kind.COUNT), rows),
        (Column("source_rows_per_s", Kind.NUMBER, "rows/s"), rows / span_s if span_s else None),
        (
            Column("source_keys", Kind.NUMBER, about="estimated from the sample"),
            trace.profile["distinct_keys"] / sample["share"],
        ),
        (Column("source_top_share", Kind.SHARE, about="of the hottest sampled key"), top[0] / rows if top else None),
    ]


def refused(trace: Trace) -> Table:
    """Why rows of the source were rejected."""
    return trace.reading.rejects.table()


def rate_table(trace: Trace) -> Table:
    """Rows per time bin."""
    rates = trace.profile["rates"]
    width = rates["width_us"]
    columns = (Column("time", Kind.TIME, about="start of the bin"), Column("rows", Kind.COUNT))
    rows = [(rates["start_us"] + at * width, count) for at, count in enumerate(rates["rows"])]
    return Table.from_rows("Rows over time", columns, rows, f"bins of {_span(width)}")


def top_keys_table(trace: Trace) -> Table:
    """The keys with the most rows, each with bounds on its count."""
    profile = trace.profile
    missed = profile["top_missed"]
    columns = (
        Column("key"),
        Column("count", Kind.COUNT, about="lower bound"),
        Column("count_high", Kind.COUNT, about="upper bound"),
        Column("share", Kind.SHARE, about="count / rows"),
    )
    rows = [
        (NULL_KEY if key is None else key, count, count + missed, count / trace.rows)
        for key, count in profile["top_keys"]
    ]
    return Table.from_rows("Top keys", columns, rows)


def rank_table(trace: Trace) -> Table:
    """Share of the stream by key rank, hottest first."""
    columns = (Column("rank", Kind.COUNT), Column("share", Kind.SHARE))
    counts = trace.profile["rank_counts"]
    rows = [(rank, count / trace.rows) for rank, count in enumerate(counts, start=1)]
    return Table.from_rows("Share by rank", columns, rows)


def streams_table(trace: Trace) -> Table | None:
    """Rows per stream; None without streams."""
    streams = trace.profile["streams"]
    if not streams:
        return None
    columns = (Column("stream"), Column("rows", Kind.COUNT), Column("share", Kind.SHARE))
    return Table.from_rows("Streams", columns, [(name, rows, rows / trace.rows) for name, rows in streams.items()])


def trace_document(trace: Trace) -> dict[str, Any]:
    """A trace's facts as one JSON document."""
    summary = dict(trace.manifest.summary)
    return {"schema": SCHEMA, "path": str(trace.path), "content_hash": trace.manifest.content_hash, **summary}


def _exactness(profile: dict[str, Any]) -> str:
    return "distinct keys" if profile["distinct_exact"] else "distinct keys, estimated within about 2 %"


def _note(profile: dict[str, Any]) -> str:
    return "" if profile["distinct_exact"] else "keys is an estimate, standard error about 2 %"


def _span(width_us: int) -> str:
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000)):
        if width_us % size == 0:
            return f"{width_us // size} {unit}"
    return f"{width_us / 1000:g} ms"
