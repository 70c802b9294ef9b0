"""Boundaries and line numbers of records in raw bytes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput

Bytes: TypeAlias = NDArray[np.uint8]
Places: TypeAlias = NDArray[np.int64]

NEVER = 256
"""Matches no byte: turns a delimiter or quote off."""

ALWAYS = -1
"""Instead of the byte that hides line ends, where any may be within a record."""

OPEN_QUOTE = -1
"""Value in `fields` for a line whose quote is never closed."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records of a buffer, without blank lines."""

    # starts, ends: first byte of each record, and the byte after its last, before its line end; shape (records,)
    starts: Places
    ends: Places
    lines: Places  # line of the first byte, from 0 at the start of the buffer
    fields: NDArray[np.int32]  # number of delimited fields; `OPEN_QUOTE` where a quote is never closed
    used: int  # bytes of the buffer up to the end of the last complete record
    used_lines: int  # line ends within those bytes

    def __len__(self) -> int:
        return len(self.starts)

    def where(self, mask: NDArray[np.bool_] | slice) -> "Records":
        """Records selected by a mask or a range."""
        return Records(
            self.starts[mask], self.ends[mask], self.lines[mask], self.fields[mask], self.used, self.used_lines
        )


def delimited_records(data: Bytes, delimiter: int, quote: int, *, at_end: bool) -> Records:
    """Find records of delimited text (RFC 4180).

    A quote opens at the start of a field, and two quotes within it mean one. Lines end with LF, CRLF or CR outside
    quotes. A quote that is never closed affects only its own line, which is a record with `OPEN_QUOTE` fields.

    Args:
        data: The bytes, beginning with a record.
        delimiter, quote: Byte values, or `NEVER`.
        at_end: Whether these are the last bytes; if not, an unfinished last record is not used.
    """
    size = int(np.count_nonzero(data == 10) + np.count_nonzero(data == 13)) + 1
    return Records(*_delimited(data, delimiter, quote, at_end, size))


def line_records(data: Bytes, *, at_end: bool) -> Records:
    """Find lines ended by LF or CRLF, as records of one field."""
    newlines = np.flatnonzero(data == 10)
    starts = np.concatenate(([0], newlines + 1))
    ends = np.concatenate((newlines, [len(data)]))
    if not at_end or starts[-1] == len(data):
        starts, ends = starts[:-1], ends[:-1]
    used = len(data) if at_end else (int(newlines[-1]) + 1 if len(newlines) else 0)
    lines = np.arange(len(starts))
    ended_by_cr = (ends > starts) & (data[np.maximum(ends - 1, 0)] == 13) if len(data) else np.zeros(0, bool)
    ends = ends - ended_by_cr
    full = ends > starts
    count = int(full.sum())
    return Records(starts[full], ends[full], lines[full], np.ones(count, np.int32), used, len(newlines))


def last_line_end(data: Bytes, hider: int) -> Records | None:
    """What complete lines use, without the records.

    None if the records decide where lines end.

    Args:
        data: The bytes, beginning with a record; more follow.
        hider: The byte between which a record may hold line ends, or `NEVER`, or `ALWAYS`.
    """
    if hider == ALWAYS or (hider != NEVER and (data == hider).any()):
        return None
    ended, returns = data == 10, np.flatnonzero(data == 13)
    if len(returns) and (returns[-1] + 1 == len(data) or not ended[returns + 1].all()):
        return None  # a line that ends by CR alone
    used = len(data) - int(ended[::-1].argmax()) if ended.any() else 0
    nothing = np.zeros(0, np.int64)
    return Records(nothing, nothing, nothing, np.zeros(0, np.int32), used, int(np.count_nonzero(ended)))


@compiled
def _delimited(data: Bytes, delimiter: int, quote: int, at_end: bool, size: int) -> Any:
    starts = np.empty(size, np.int64)
    ends = np.empty(size, np.int64)
    lines = np.empty(size, np.int64)
    fields = np.empty(size, np.int32)
    count = 0
    n = len(data)
    at = 0
    line = 0
    used = 0
    used_lines = 0
    while at < n:
        start = at
        first_line = line
        found = 1
        field_start = True
        spoilt = False
        finished = False
        while at < n:
            byte = data[at]
            if field_start and byte == quote:
                if spoilt:
                    at += 1
                    field_start = False
                    continue
                at += 1
                inner = line
                closed = False
                while at < n:
                    byte = data[at]
                    at += 1
                    if byte == quote:
                        if at < n and data[at] == quote:
                            at += 1
                        else:
                            closed = True
                            break
                    elif byte == 10 or (byte == 13 and not (at < n and data[at] == 10)):
                        inner += 1
                if closed and not (at == n and not at_end):
                    line = inner
                    field_start = False
                    continue
                if not at_end:
                    return starts[:count], ends[:count], lines[:count], fields[:count], used, used_lines
                if closed:
                    line = inner
                    field_start = False
                    continue
                spoilt = True  # take the physical line
                at = start
                line = first_line
                field_start = False
                continue
            field_start = False
            if byte == delimiter and not spoilt:
                found += 1
                field_start = True
            elif byte == 10 or byte == 13:
                finished = True
                break
            at += 1
        end = at
        if finished:
            if data[at] == 13:
                if at + 1 < n:
                    if data[at + 1] == 10:
                        at += 1
                elif not at_end:
                    break
            at += 1
            line += 1
        elif not at_end:
            break
        if end > start:
            starts[count] = start
            ends[count] = end
            lines[count] = first_line
            fields[count] = OPEN_QUOTE if spoilt else found
            count += 1
        used = at
        used_lines = line
    return starts[:count], ends[:count], lines[:count], fields[:count], used, used_lines


def field_paths(schema: Iterable[pa.Field]) -> tuple[str, ...]:
    """Paths of the fields within struct columns, such as `event.user.id`."""
    return tuple(path for field in schema for path in _below(quoted_name(field.name), field.type))


def _below(path: str, kind: pa.DataType) -> Iterator[str]:
    for field in kind if pa.types.is_struct(kind) else ():
        below = f"{path}.{quoted_name(field.name)}"
        yield from [below] if not pa.types.is_struct(field.type) else _below(below, field.type)


def quoted_name(name: str) -> str:
    """A name in backticks, unless it is a plain word."""
    return name if re.fullmatch(r"\w+", name) else f"`{name}`"


class InDoubt(Exception):
    """Only Spark can tell what it makes of a value."""


@contextmanager
def no_doubt(refuse: Callable[[], None]) -> Iterator[None]:
    """Refuse what only Spark can read."""
    try:
        yield
    except InDoubt:
        refuse()


NOT_UTF8 = "not UTF-8 text"

BOM = b"\xef\xbb\xbf"
"""Byte order mark that UTF-8 text may begin with."""

_WIDE = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks of UTF-16 and UTF-32."""

_LOOKED_AT = 1024
"""Bytes in which UTF-16 without a mark is recognized by its NULs."""

WHOLE_LINE = "_line_text"
"""The only column of a format whose lines Spark parses."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """Columns of parsed records."""

    # columns by name, text unless the format's `types` say otherwise, one row per record; null in rejected records
    columns: dict[str, pa.Array]
    reasons: pa.Array | None = None  # why a record is rejected, or null; None if all are good


class Named(Protocol):
    """What a format says of its columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of all files, in order."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """Types of the columns that are not text."""

    @property
    def times(self) -> Mapping[str, str]:
        """Time formats of columns, where known."""

    @property
    def partitions(self) -> Mapping[str, str]:
        """Partition column by key column, where known."""


@runtime_checkable
class RecordFormat(Named, Protocol):
    """A text format with its settings; plain data for Spark tasks."""

    @property
    def header(self) -> tuple[str, ...] | None:
        """The first record of each file, or None without headers."""

    @property
    def line_hider(self) -> int:
        """The byte between which records may hold line ends, `NEVER` or `ALWAYS`."""

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """Records of a buffer."""

    def rows(self, data: Bytes, records: Records) -> tuple[Bytes, Records]:
        """The rows within records, and their bytes."""

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """Wanted columns of the rows, whose bytes are UTF-8."""


class OfLines:
    """A text format whose records are lines, without headers."""

    __slots__ = ()
    header: ClassVar[None] = None
    types: ClassVar[dict[str, pa.DataType]] = {}
    line_hider: ClassVar[int] = NEVER

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """Lines."""
        return line_records(data, at_end=at_end)

    def rows(self, data: Bytes, records: Records) -> tuple[Bytes, Records]:
        """The lines themselves."""
        return data, records


def refuse_utf16(head: bytes, name: str) -> None:
    """Refuse UTF-16 and UTF-32."""
    encoding = next((encoding for mark, encoding in _WIDE.items() if head.startswith(mark)), _unmarked(head))
    if encoding:
        raise BadInput(f"{name} is {encoding[:6].upper()} text; convert it with `iconv -f {encoding} -t utf-8`")


def _unmarked(head: bytes) -> str:
    """Encoding of UTF-16 without a mark, in which most of every other byte is NUL; empty for other text."""
    even, odd = head[:_LOOKED_AT:2], head[1:_LOOKED_AT:2]
    for nuls, letters, encoding in ((odd, even, "utf-16le"), (even, odd, "utf-16be")):
        if len(nuls) > 3 and 2 * nuls.count(0) > len(nuls) and not letters.count(0):
            return encoding
    return ""


def text_of(data: Bytes, records: Records) -> pa.Array:
    """Records, which rise, as a column of text, not checked for UTF-8."""
    # a column of the records and of what lies between them
    offsets = np.column_stack((records.starts, records.ends)).ravel()
    pieces = max(len(offsets) - 1, 0)
    every = pa.LargeStringArray.from_buffers(pieces, pa.py_buffer(offsets), pa.py_buffer(data))
    return every.take(pa.array(np.arange(0, pieces, 2)))


def compacted(data: Bytes, records: Records, *, spaced: bool = False) -> tuple[Bytes, Records]:
    """Records in a buffer of their own, ended by line ends.

    Args:
        spaced: Whether line ends within records become spaces.
    """
    after = np.cumsum(records.ends - records.starts + 1, dtype=np.int64)
    starts = np.append(0, after)[: len(records)]
    joined = _joined(data, records.starts, records.ends, spaced, int(after[-1]) if len(after) else 0)
    return joined, Records(starts, after - 1, records.lines, records.fields, len(joined), records.used_lines)


@compiled
def _joined(data: Bytes, starts: Places, ends: Places, spaced: bool, size: int) -> Any:
    joined = np.empty(size, np.uint8)
    to = 0
    for record in range(len(starts)):
        for at in range(starts[record], ends[record]):
            byte = data[at]
            joined[to] = 32 if spaced and (byte == 10 or byte == 13) else byte
            to += 1
        joined[to] = 10
        to += 1
    return joined


def chosen_by(beginning: str, data: Bytes, records: Records, *, wanted: bool) -> Records:
    """The records that begin with a text, or the others."""
    if not beginning:
        return records
    found = np.ones(len(records), np.bool_)
    for at, letter in enumerate(beginning.encode()):
        place = records.starts + at
        found &= (place < records.ends) & (data[np.minimum(place, len(data) - 1)] == letter)
    return records.where(found == wanted)


def is_utf8(data: Bytes, records: Records) -> NDArray[np.bool_] | None:
    """Mask of the records that are UTF-8, or None if all are."""
    raw = memoryview(data)  # type: ignore[arg-type]  # an array is a buffer; numpy's stubs do not say so
    try:
        str(raw, "utf-8")
    except UnicodeDecodeError:
        good = np.ones(len(records), bool)
        for at, (start, end) in enumerate(zip(records.starts.tolist(), records.ends.tolist(), strict=True)):
            try:
                str(raw[start:end], "utf-8")
            except UnicodeDecodeError:
                good[at] = False
        return good
    return None
