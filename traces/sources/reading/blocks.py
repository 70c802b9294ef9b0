"""Blocks of source files, read in Spark tasks as columns of text.

The cut depends only on the bytes, so that the same files give the same blocks on any cluster.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import BadInput, listed
from adapt.traces.sources.reading import blocks as sizes
from adapt.traces.sources.reading.files import CHUNK_BYTES, Container, SourceFile, unpacked
from adapt.traces.sources.reading.records import (
    BOM,
    NOT_UTF8,
    Bytes,
    Named,
    RecordFormat,
    Records,
    compacted,
    is_utf8,
    last_line_end,
    refuse_utf16,
    text_of,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs

BLOCK_BYTES = 32 << 20
"""Approximate size of a block of a plain file; a compressed file is one block."""

LONGEST_RECORD = 64 << 20

ROWS_A_BATCH = 65_536

_FEW_BYTES = 1 << 18
"""So few bytes of records are parsed with the next ones."""

_LINE_END = np.frombuffer(b"\n", np.uint8)

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
class BlockFormat(Named, Protocol):
    """A binary format with blocks of its own; plain data."""

    def columns_of(self, file: SourceFile) -> tuple[str, ...]:
        """Columns of one file."""

    def cut(self, at: int, file: SourceFile) -> list[Block]:
        """Blocks of one file, whose lines are numbers of records."""

    def read(self, block: Block, wanted: Sequence[str], *, with_text: bool = False) -> Iterator[pa.RecordBatch]:
        """Records of a block, as `read_blocks` yields them."""


def has_blocks(form: object) -> "TypeIs[BlockFormat]":
    """Whether a format has blocks of its own."""
    return hasattr(form, "cut")


def reader_schema(wanted: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Schema of `read_blocks`: the columns of `PLACE`, then the wanted ones.

    Args:
        types: Types of columns that are not text.
    """
    fixed = [("_file", pa.int32()), ("_line", pa.int64()), ("_reason", pa.string()), ("_text", pa.string())]
    return pa.schema([*fixed, *((name, types.get(name, pa.string())) for name in wanted)])


def read_blocks(
    blocks: Iterable[Block], form: RecordFormat, wanted: Sequence[str], *, with_text: bool = False
) -> Iterator[pa.RecordBatch]:
    """Records of blocks of one format, in order.

    They come as batches of `reader_schema`; small blocks share one.

    Args:
        wanted: Columns to extract; `PATH` is the file's label.
        with_text: Include the text of every record, not only of rejected ones.
    """
    held, size = list[_Some](), 0
    for some in _some_records(blocks, form):
        held.append(some)
        size += int(some.records.ends[-1] - some.records.starts[0])
        if size > _FEW_BYTES:
            yield _as_batch(held, form, wanted, with_text)
            held, size = [], 0
    if held:
        yield _as_batch(held, form, wanted, with_text)


def _some_records(blocks: Iterable[Block], form: RecordFormat) -> Iterator["_Some"]:
    """Records of blocks, at most `ROWS_A_BATCH` at a time."""
    for block in blocks:
        with unpacked(block.source) as stream:
            if block.offset:
                stream.seek(block.offset)
            line = block.line
            at_header = form.header is not None and block.offset == 0
            for data, records, _, lines in settled(stream, block, form):
                if at_header and len(records):
                    _check_header(data, records, form, block.source)
                    records = records.where(slice(1, None))
                    at_header = False
                data, records = form.rows(data, records)
                for first in range(0, len(records), ROWS_A_BATCH):
                    yield _Some(block, line, data, records.where(slice(first, first + ROWS_A_BATCH)))
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
        try:
            records = form.records(data, at_end=at_end) if ends is None else ends
        except BadInput as error:
            raise BadInput(f"{block.source.label}: {error}") from None
        if not at_end and len(data) - records.used > LONGEST_RECORD:
            raise BadInput(
                f"{block.source.label} line {line + records.used_lines}: a record must not exceed "
                f"{LONGEST_RECORD >> 20} MiB (an object or a quote that is never closed? --quote '' turns quoting off)"
            )
        yield data, records, records.used + skipped, records.used_lines
        line += records.used_lines
        rest = data[records.used :].tobytes()
        if at_end:
            return


@dataclass(frozen=True, slots=True)
class _Some:
    """Some records of a block."""

    block: Block
    line: int  # line of the first byte
    data: Bytes
    records: Records

    def alone(self, at: int) -> tuple[Bytes, Records]:
        """Their bytes, without others that may be bad, and the records as if these began at `at`."""
        made, low, high = self.records, int(self.records.starts[0]), int(self.records.ends[-1])
        moved = Records(made.starts - low + at, made.ends - low + at, made.lines + self.line, made.fields, 0, 0)
        return self.data[low:high], moved


def _together(held: Sequence[_Some]) -> tuple[Bytes, Records]:
    """The bytes of records, and where each is in them."""
    if len(held) == 1:
        return held[0].alone(0)
    spans, records, at = list[Bytes](), list[Records](), 0
    for some in held:
        span, moved = some.alone(at)
        spans += [span, _LINE_END]
        records.append(moved)
        at += len(span) + 1
    starts, ends, lines, fields = (
        np.concatenate([getattr(each, name) for each in records]) for name in ("starts", "ends", "lines", "fields")
    )
    return np.concatenate(spans), Records(starts, ends, lines, fields, 0, 0)


def _as_batch(held: Sequence[_Some], form: RecordFormat, wanted: Sequence[str], with_text: bool) -> pa.RecordBatch:
    span, shifted = _together(held)
    count = len(shifted)
    reasons = np.full(count, None, dtype=object)
    columns: dict[str, pa.Array] = {}
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
            compact, sound = compacted(span, shifted.where(good))
            parsed = form.parse(compact, sound, parsed_names)
            places = pa.array(np.cumsum(good) - 1, mask=~good)
            columns = {name: column.take(places) for name, column in parsed.columns.items()}
            if parsed.reasons is not None:
                reasons[good] = np.array(parsed.reasons.to_pylist(), dtype=object)
    refused = reasons != None  # noqa: E711 - elementwise
    texts = _texts(span, shifted, np.ones(count, bool) if with_text else refused)
    nothing, schema = pa.nulls(count, pa.string()), reader_schema(wanted, form.types)
    rows = [len(some.records) for some in held]
    if PATH in wanted:
        labels = pa.array([some.block.source.label for some in held], pa.string())
        columns[PATH] = labels.take(pa.array(np.repeat(np.arange(len(held)), rows)))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.array([some.block.file for some in held], np.int32).repeat(rows)),
            pa.array(shifted.lines),
            pa.array(reasons, pa.string()) if refused.any() else nothing,
            texts,
            *(columns[name] if name in columns else pa.nulls(count, schema.field(name).type) for name in wanted),
        ],
        schema=schema,
    )


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


def _check_header(data: Bytes, records: Records, form: RecordFormat, source: SourceFile) -> None:
    line = data[int(records.starts[0]) : int(records.ends[0])]
    try:
        line.tobytes().decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{source.label}: the header is not UTF-8 text; convert the file, e.g. with `iconv -f latin1 -t utf-8`"
        ) from error
    if int(records.fields[0]) == len(form.columns) and _cells(cast(Any, form), line.tobytes()) == form.header:
        return
    found = line.tobytes().decode("utf-8", "backslashreplace")[:200]
    first = listed([" ".join(name.split()) for name in form.header or ()])
    raise BadInput(
        f"{source.label} has no header and does not begin with that of the first file ({first}) but with {found!r}"
    )


@lru_cache(64)
def _cells(form: Any, line: bytes) -> tuple[str, ...]:
    """The fields of a line; most files of a source begin with the same."""
    start = np.zeros(1, np.int64)
    only = Records(start, start + len(line), start, np.array([len(form.columns)], np.int32), 0, 0)
    read = form.parse(np.frombuffer(line, np.uint8), only, form.columns).columns
    return tuple(read[name][0].as_py() for name in form.columns)


_LOG = logging.getLogger(__name__)

RANGE_BYTES = 1 << 30
"""Size of a range; a multiple of `BLOCK_BYTES`."""

GUESS_BYTES = 1 << 20
"""Bytes before a range in which its first record is looked for."""

PACKED_BYTES_A_S = 20_000_000
"""About how many bytes of a compressed file one core unpacks and parses in a second."""

WARNED_S = 60
"""Shortest time of a task on one file that is worth a warning."""

ROUNDS = 3
"""Rounds in which all ranges with a wrong guess are walked again; then one at a time."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where the records of a range begin."""

    begin: int  # byte of its first record
    end: int  # the byte after its last record
    lines: int  # line ends between the two
    blocks: Sequence[Sequence[int]]  # byte, and line from 0, of each block that begins after its first record


@dataclass(frozen=True, slots=True)
class Task:
    """A range to walk."""

    first: int  # the first byte of the range
    end: int  # the byte after its last
    begin: int | None = None  # byte of its first record; None to guess it
    certain: bool = False  # whether a record is known to begin there, so that an error is one of the file
    line: int = 1  # line of that byte, if certain


def ranges(file: SourceFile, form: object) -> range:
    """The first byte of each range of a file."""
    one = file.container is not Container.PLAIN or has_blocks(form)
    return range(0, 1 if one else max(file.size, 1), max(file.size, 1) if one else RANGE_BYTES)


def warn_of_packed(files: Sequence[SourceFile]) -> None:
    """Log which compressed files take a core long to read."""
    for file in files:
        seconds = file.size / PACKED_BYTES_A_S
        if file.container is not Container.PLAIN and seconds >= WARNED_S:
            _LOG.warning(
                "%s is compressed (%s), so one core reads it alone, for about %d minutes; unpacked or in several files,"
                " all cores would share it",
                file.label,
                file.container.value,
                -(-seconds // 60),
            )


def walk(file: SourceFile, form: RecordFormat, task: Task) -> Walk | None:
    """The records of a range; None without a good guess."""
    try:
        with unpacked(file) as stream:
            begin = task.begin if task.begin is not None else _guessed(stream, form, task.first)
            return None if begin is None else _walked(stream, Block(0, file, begin, None, task.line), form, task.end)
    except BadInput:
        if task.certain:
            raise
        return None


def again(asked: range, walks: Mapping[int, Walk | None], done: int) -> list[Task]:
    """Ranges of a file to walk next.

    At first all, then those that were begun where no record begins.

    Args:
        asked: The first byte of each range.
        walks: The walks so far, by the first byte of the range.
        done: Rounds done.
    """
    if not done:
        return [Task(first, first + asked.step, None if first else 0, certain=not first) for first in asked]
    tasks: list[Task] = []
    end: int | None = 0
    line = 1
    for first in asked:
        walked = walks[first]
        if end is not None and (walked is None or walked.begin != end):
            tasks.append(Task(first, first + asked.step, end, not tasks, line))
        end = None if walked is None else walked.end
        line += 0 if walked is None else walked.lines
    return tasks if done <= ROUNDS else tasks[:1]


def blocks_of_walks(at: int, file: SourceFile, walks: Iterable[Walk]) -> list[Block]:
    """Blocks of a file whose ranges follow each other."""
    starts, line = [(0, 1)], 1
    for walked in walks:
        for byte, within in ((walked.begin, 0), *walked.blocks):
            if starts[-1][0] < byte < file.size:
                starts.append((byte, line + within))
        line += walked.lines
    ends = [start[0] for start in starts[1:]]
    return [
        Block(at, file, byte, None if end is None else end - byte, line)
        for (byte, line), end in zip(starts, [*ends, None], strict=True)
    ]


def cut(at: int, file: SourceFile, form: RecordFormat) -> list[Block]:
    """Blocks of one source file, walked at once."""
    if file.container is not Container.PLAIN or file.size <= sizes.BLOCK_BYTES:
        return [Block(at, file)]
    with unpacked(file) as stream:
        return blocks_of_walks(at, file, [_walked(stream, Block(at, file), form, file.size + 1)])


def _guessed(stream: IO[bytes], form: RecordFormat, first: int) -> int | None:
    """Where a record probably begins, at or before a byte."""
    before = max(0, first - GUESS_BYTES)
    stream.seek(before)
    data = np.frombuffer(stream.read(first - before), np.uint8)
    if before:
        ends = np.flatnonzero((data == 10) | (data == 13))
        if not len(ends):
            return None
        before, data = before + int(ends[0]) + 1, data[int(ends[0]) + 1 :]
    found = last_line_end(data, form.line_hider) or form.records(data, at_end=False)
    return before + found.used


def _walked(stream: IO[bytes], rest: Block, form: RecordFormat, end: int) -> Walk:
    """The first records of the rest of a file, up to the end of a range; blocks end with a chunk."""
    stream.seek(rest.offset)
    position, line, read = rest.offset, 0, rest.offset
    blocks: list[list[int]] = []
    for data, records, used, lines in settled(stream, rest, form, places=False):
        before, read = read, position + len(data) + used - records.used
        position += used
        line += lines
        if read >= end:
            break
        if read < rest.source.size and read // sizes.BLOCK_BYTES > before // sizes.BLOCK_BYTES:
            blocks.append([position, line])
    return Walk(rest.offset, position, line, blocks)
