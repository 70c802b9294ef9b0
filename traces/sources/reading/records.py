"""Boundaries and line numbers of records in raw bytes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled

Bytes: TypeAlias = NDArray[np.uint8]
Places: TypeAlias = NDArray[np.int64]

NEVER = 256
"""Matches no byte: turns a delimiter or quote off."""

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

    def where(self, mask: NDArray[np.bool_]) -> "Records":
        """Records selected by a mask."""
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
        hider: The byte between which a record may hold line ends, or `NEVER`.
    """
    if hider != NEVER and (data == hider).any():
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
