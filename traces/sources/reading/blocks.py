"""Blocks of source files, read in Spark tasks as columns of text.

The cut depends only on the bytes, so that the same files give the same blocks on any cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import BadInput, listed
from adapt.traces.sources.reading.containers import CHUNK_BYTES, unpacked
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.sources.reading.format import BOM, NOT_UTF8, RecordFormat, is_utf8, refuse_utf16, text_of
from adapt.traces.sources.reading.records import Bytes, Records, last_line_end

BLOCK_BYTES = 32 << 20
"""Approximate size of a block of a plain file; a compressed file is one block."""

LONGEST_RECORD = 64 << 20

ROWS_A_BATCH = 65_536

PLACE = ("_file", "_line", "_reason", "_text")
"""Columns for the place of a row, why it is rejected, and its text."""

PATH = "_path"
"""The column for a file's path, relative to the source argument."""


@dataclass(frozen=True, slots=True)
class Block:
    """A range of whole records of one source file."""

    file: int  # position of the file among all source files
    source: SourceFile
    offset: int = 0  # first byte of the block in a plain file
    size: int | None = None  # number of bytes; None up to the end
    line: int = 1  # line of its first byte, from 1


@runtime_checkable
class BlockFormat(Protocol):
    """A binary format with blocks of its own; plain data."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of all files."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """Types of the columns that are not text."""

    @property
    def times(self) -> Mapping[str, str]:
        """Time formats of columns, where known."""

    @property
    def partitions(self) -> Mapping[str, str]:
        """Partition column by key column, where known."""

    def columns_of(self, file: SourceFile) -> tuple[str, ...]:
        """Columns of one file."""

    def cut(self, at: int, file: SourceFile) -> list[Block]:
        """Blocks of one file, whose lines are numbers of records."""

    def read(self, block: Block, wanted: Sequence[str], *, with_text: bool = False) -> Iterator[pa.RecordBatch]:
        """Records of a block, as `read_block` yields them."""


def reader_schema(wanted: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Schema of `read_block`: the columns of `PLACE`, then the wanted ones.

    Args:
        types: Types of columns that are not text.
    """
    fixed = [("_file", pa.int32()), ("_line", pa.int64()), ("_reason", pa.string()), ("_text", pa.string())]
    return pa.schema([*fixed, *((name, types.get(name, pa.string())) for name in wanted)])


def read_block(
    block: Block, form: RecordFormat, wanted: Sequence[str], *, with_text: bool = False
) -> Iterator[pa.RecordBatch]:
    """Records of a block, in order, as batches of `reader_schema`.

    Args:
        wanted: Columns to extract; `PATH` is the file's label.
        with_text: Include the text of every record, not only of rejected ones.
    """
    with unpacked(block.source) as stream:
        if block.offset:
            stream.seek(block.offset)
        line = block.line
        at_header = form.header is not None and block.offset == 0
        for data, records, _, lines in settled(stream, block, form):
            if at_header and len(records):
                _check_header(data, records, form, block.source)
                records = records.where(np.arange(len(records)) > 0)
                at_header = False
            for first in range(0, len(records), ROWS_A_BATCH):
                some = records.where(_between(len(records), first, first + ROWS_A_BATCH))
                yield _as_batch(data, some, form, wanted, block, line, with_text)
            line += lines


def settled(
    stream: IO[bytes], block: Block, form: RecordFormat, *, places: bool = True
) -> Iterator[tuple[Bytes, Records, int, int]]:
    """Chunks of whole records, in order.

    Each is the bytes, the records, and the bytes and lines that they use.

    Chunks end at multiples of `CHUNK_BYTES` in the file, wherever the block begins.

    Args:
        places: Find each record; else perhaps only the end of the last.
    """
    left, line, at = block.size, block.line, block.offset
    rest = b""
    at_start = block.offset == 0
    while True:
        size = CHUNK_BYTES - at % CHUNK_BYTES
        chunk = stream.read(size if left is None else min(size, left))
        at += len(chunk)
        at_end = not chunk
        if left is not None:
            left -= len(chunk)
            at_end = at_end or left == 0
        skipped = 0
        if at_start:
            at_start = False
            refuse_utf16(chunk, block.source.label)
            skipped = len(chunk) - len(chunk.removeprefix(BOM))
        data = np.frombuffer(rest + chunk[skipped:] if rest or skipped else chunk, np.uint8)
        ends = None if places or at_end else last_line_end(data, form.line_hider)
        records = form.records(data, at_end=at_end) if ends is None else ends
        if not at_end and len(data) - records.used > LONGEST_RECORD:
            raise BadInput(
                f"{block.source.label} line {line + records.used_lines}: a record must not exceed "
                f"{LONGEST_RECORD >> 20} MiB (a quote that is never closed? --quote '' turns quoting off)"
            )
        yield data, records, records.used + skipped, records.used_lines
        line += records.used_lines
        rest = data[records.used :].tobytes()
        if at_end:
            return


def _as_batch(
    data: Bytes, records: Records, form: RecordFormat, wanted: Sequence[str], block: Block, line: int, with_text: bool
) -> pa.RecordBatch:
    count = len(records)
    reasons = np.full(count, None, dtype=object)
    columns: dict[str, pa.Array] = {}
    # only the bytes of these records, so that a bad byte elsewhere does not make them slow
    low = int(records.starts[0])
    span = data[low : int(records.ends[-1])]
    shifted = Records(
        records.starts - low, records.ends - low, records.lines, records.fields, len(span), records.used_lines
    )
    good = is_utf8(span, shifted)
    parsed_names = [name for name in wanted if name in form.columns]
    if good is None:
        parsed = form.parse(span, shifted, parsed_names)
        columns = parsed.columns
        if parsed.reasons is not None:
            reasons = np.array(parsed.reasons.to_pylist(), dtype=object)
    else:
        reasons[~good] = NOT_UTF8
        if good.any():
            compact, sound = _compacted(span, shifted.where(good))
            parsed = form.parse(compact, sound, parsed_names)
            rows = pa.array(np.cumsum(good) - 1, mask=~good)
            columns = {name: column.take(rows) for name, column in parsed.columns.items()}
            if parsed.reasons is not None:
                reasons[good] = np.array(parsed.reasons.to_pylist(), dtype=object)
    refused = reasons != None  # noqa: E711 - elementwise
    texts = _texts(span, shifted, np.ones(count, bool) if with_text else refused)
    nothing, schema = pa.nulls(count, pa.string()), reader_schema(wanted, form.types)
    if PATH in wanted:
        columns[PATH] = pa.repeat(pa.scalar(block.source.label, pa.string()), count)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(count, block.file, np.int32)),
            pa.array(records.lines + line),
            pa.array(reasons, pa.string()) if refused.any() else nothing,
            texts,
            *(columns[name] if name in columns else pa.nulls(count, schema.field(name).type) for name in wanted),
        ],
        schema=schema,
    )


def _compacted(data: Bytes, records: Records) -> tuple[Bytes, Records]:
    """The same records in a buffer of their own, each followed by a line end."""
    pieces = [data[start:end] for start, end in zip(records.starts.tolist(), records.ends.tolist(), strict=True)]
    joined = np.frombuffer(b"\n".join(piece.tobytes() for piece in pieces) + b"\n", np.uint8)
    lengths = records.ends - records.starts
    starts = np.concatenate(([0], np.cumsum(lengths + 1)[:-1]))
    return joined, Records(starts, starts + lengths, records.lines, records.fields, len(joined), records.used_lines)


def _texts(data: Bytes, records: Records, chosen: NDArray[np.bool_]) -> pa.Array:
    """The text of the chosen records, null elsewhere; bytes that are not UTF-8 are shown as \\xNN."""
    if not chosen.any():
        return pa.nulls(len(records), pa.string())
    if chosen.all() and is_utf8(data, records) is None:
        return text_of(data, records).cast(pa.string())
    places = zip(records.starts.tolist(), records.ends.tolist(), chosen.tolist(), strict=True)
    shown = [
        data[start:end].tobytes().decode("utf-8", "backslashreplace") if take else None for start, end, take in places
    ]
    return pa.array(shown, pa.string())


def _between(count: int, first: int, last: int) -> NDArray[np.bool_]:
    at = np.arange(count)
    return (at >= first) & (at < last)


def _check_header(data: Bytes, records: Records, form: RecordFormat, source: SourceFile) -> None:
    line = data[int(records.starts[0]) : int(records.ends[0])]
    try:
        line.tobytes().decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{source.label}: the header is not UTF-8 text; convert the file, e.g. with `iconv -f latin1 -t utf-8`"
        ) from error
    if int(records.fields[0]) == len(form.columns):
        only = Records(
            records.starts[:1] * 0, records.ends[:1] - records.starts[0], records.lines[:1], records.fields[:1], 0, 0
        )
        read = form.parse(line, only, form.columns).columns
        if tuple(read[name][0].as_py() for name in form.columns) == form.header:
            return
    found = line.tobytes().decode("utf-8", "backslashreplace")[:200]
    raise BadInput(
        f"{source.label} has no header and does not begin with that of the first file ({listed(form.header or ())})"
        f" but with {found!r}"
    )
