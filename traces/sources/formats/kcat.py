r"""Output of kcat: `-J` envelopes, and records in a `-f` format.

Envelopes are read as JSON lines. There are two readers for `-f`: if the format prints the size of key or payload before
it (`%K %k`, `%S %s`, `%R%s`), records are parsed field by field and may hold any bytes; else a record extends to the
next end of the format, and is parsed by a regular expression.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.traces.sources.formats.json_lines import JsonLines
from adapt.traces.sources.formats.kcat_pattern import SIZES, Kind, Piece, pieces_of
from adapt.traces.sources.reading.format import Parsed, text_of
from adapt.traces.sources.reading.records import Bytes, Places, Records

TIMES = {"ts": "epoch_ms"}
"""Kafka's timestamps are in milliseconds."""

PARTITIONS = {"key": "partition", "key_bytes": "partition"}
"""Column of the partition of a record, by the column of its key."""

NO_MATCH = "does not match --kcat-format"

NULL_SIZE = -1
NO_TIME = -1

LONGEST_FIELD = 1 << 26

ENVELOPE = re.compile(
    r'\s*\{\s*"topic"\s*:\s*"[^"]*"\s*,\s*"partition"\s*:\s*-?\d+\s*,\s*"offset"\s*:\s*-?\d+\s*,.*"(key|payload)"\s*:',
    re.DOTALL,
)
"""Beginning of an envelope."""

_DIGITS = 18
"""Most digits of Kafka's numbers."""


def envelopes() -> JsonLines:
    """The format of `kcat -J`."""
    return JsonLines(TIMES, PARTITIONS)


def printed(pattern: str) -> "KcatText":
    """The format of `kcat -f`.

    Raises:
        UsageError: the pattern is invalid, or the end of a field is ambiguous.
    """
    pieces = pieces_of(pattern)
    sized = [piece for piece in pieces if piece.sized]
    names = [piece.column for piece in pieces if piece.column]
    numbers: dict[str, pa.DataType] = {
        piece.column: pa.int64() for piece in pieces if piece.kind in (Kind.NUMBER, Kind.SIZE)
    }
    if not sized:
        return KcatText(tuple(names), numbers, pieces)
    raw = {f"{piece.column}_bytes": pa.binary() for piece in sized}
    return KcatSized((*names, *raw), {**numbers, **raw}, pieces)


@dataclass(frozen=True, slots=True)
class KcatText:
    """Records without sizes, which extend to the next end of the pattern.

    A null key (or payload) looks like an empty one in such a record; both are null unless its size is printed too.

    Attributes:
        columns: Columns that the pattern prints.
        types: Types of the columns that are not text.
        pieces: Pieces of the pattern.
    """

    columns: tuple[str, ...]
    types: dict[str, pa.DataType]
    pieces: tuple[Piece, ...]
    times: ClassVar[dict[str, str]] = TIMES
    header: ClassVar[None] = None
    any_bytes: ClassVar[bool] = False
    line_hider: ClassVar[None] = None

    @property
    def partitions(self) -> dict[str, str]:
        """The partition column, if it is printed, by key column."""
        return {key: name for key, name in PARTITIONS.items() if name in self.columns}

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """Records, numbered, since they may share a line or span several."""
        end = np.frombuffer(self.pieces[-1].literal, np.uint8)
        found = _ends(data, end)
        starts = np.concatenate(([0], found + len(end)))
        ends = np.concatenate((found, [len(data)]))
        if not at_end or starts[-1] == len(data):
            starts, ends = starts[:-1], ends[:-1]
        return _numbered(starts, ends, len(data) if at_end else int(found[-1]) + len(end) if len(found) else 0)

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """The wanted fields of each record."""
        groups = pc.extract_regex(text_of(data, records), self._expression())
        matched = groups.is_valid()
        none = pa.scalar(None, pa.string())
        reasons = None if pc.all(matched).as_py() in (True, None) else pc.if_else(matched, none, NO_MATCH)
        return Parsed({name: self._column(groups, matched, name) for name in wanted if name in self.columns}, reasons)

    def _column(self, groups: pa.StructArray, matched: pa.Array, name: str) -> pa.Array:
        column = pc.if_else(matched, groups.field(name), None).cast(pa.string())
        if name in self.types:
            return _known(name, column.cast(pa.int64()))
        if name in SIZES:
            size = SIZES[name]
            is_null = pc.equal(groups.field(size), str(NULL_SIZE)) if size in self.columns else pc.equal(column, "")
            return pc.if_else(is_null, None, column)
        return column

    def _expression(self) -> str:
        """The pattern without its end, as a regular expression."""
        parts = []
        for piece in self.pieces[:-1]:
            if piece.kind is Kind.LITERAL:
                parts.append(_quoted(piece.literal.decode("utf-8", "replace")))
            else:
                what = rf"-?\d{{1,{_DIGITS}}}" if piece.kind is Kind.NUMBER else ".*?"
                parts.append(f"(?P<{piece.column}>{what})")
        return rf"(?s)\A{''.join(parts)}\z"


@dataclass(frozen=True, slots=True)
class KcatSized(KcatText):
    """Records with sizes before key or payload, which hold any bytes.

    `key_bytes` and `payload_bytes` are the raw fields; `key` and `payload` are text, and a record is rejected if such a
    column is used but not UTF-8.
    """

    any_bytes: ClassVar[bool] = True
    line_hider: ClassVar[None] = None

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """Consecutive records.

        Bytes that do not match are one record up to the next end of the pattern.
        """
        starts, ends, used = _walk(data, *self._program(whole=True), at_end)
        return _numbered(starts, ends, used)

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """The wanted fields of each record."""
        matched, places, numbers = _fields(data, records.starts, records.ends, *self._program(whole=False))
        reasons = np.full(len(records), NO_MATCH, object)
        reasons[matched] = None
        columns = {}
        for at, piece in enumerate(self.pieces):
            raw = f"{piece.column}_bytes"
            if piece.kind is Kind.LITERAL or not {piece.column, raw} & {*wanted}:
                continue
            if piece.kind is not Kind.TEXT:
                columns[piece.column] = _known(piece.column, pa.array(numbers[:, at], mask=~matched))
                continue
            starts, ends = places[:, at, 0], places[:, at, 1]
            missing = starts < 0
            if not piece.sized and piece.column in SIZES and SIZES[piece.column] not in self.columns:
                missing |= starts == ends
            so_far = np.maximum.accumulate(np.where(missing, 0, ends))  # where a missing text begins and ends
            held = text_of(data, _numbered(np.where(missing, so_far, starts), np.where(missing, so_far, ends), 0))
            bytes_ = pc.if_else(pa.array(missing), None, held.view(pa.large_binary())).cast(pa.binary())
            if raw in wanted:
                columns[raw] = bytes_
            if piece.column in wanted:
                columns[piece.column], good = _as_text(bytes_)
                reason = f"{piece.column} is not UTF-8 text" + (f"; use {raw}" if piece.sized else "")
                reasons[~good & (reasons == None)] = reason  # noqa: E711 - elementwise
        clean = not (reasons != None).any()  # noqa: E711
        return Parsed(columns, None if clean else pa.array(reasons, pa.string()))

    def _program(self, *, whole: bool) -> tuple[NDArray[np.int64], Bytes]:
        """The pieces as numbers: kind, field whose size it sets or has (1 key, 2 payload), bounds of its literal.

        Args:
            whole: Include the literal at the end, which is not part of a record.
        """
        slots = {name: at for at, names in enumerate(SIZES.items(), 1) for name in names}
        literals = b""
        rows = []
        ended = self.pieces[-1].kind is Kind.LITERAL
        for piece in self.pieces if whole or not ended else self.pieces[:-1]:
            has_size = piece.sized or piece.column in SIZES.values()
            slot = slots[piece.column] if has_size else 0
            rows.append((piece.kind, slot, len(literals), len(literals) + len(piece.literal)))
            literals += piece.literal
        return np.array(rows, np.int64).reshape(-1, 4), np.frombuffer(literals or b"\0", np.uint8)


def _numbered(starts: Places, ends: Places, used: int) -> Records:
    """Records with their number instead of a line."""
    count = len(starts)
    return Records(starts, ends, np.arange(count), np.ones(count, np.int32), used, count)


def _known(name: str, numbers: pa.Array) -> pa.Array:
    """Numbers of a column, null where kcat prints -1 for null."""
    if name not in ("ts", *SIZES.values()):
        return numbers
    return pc.if_else(pc.equal(numbers, NO_TIME if name == "ts" else NULL_SIZE), None, numbers)


def _as_text(values: pa.Array) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Values as text, null where not UTF-8, and a mask of the others."""
    try:
        return values.cast(pa.string()), np.ones(len(values), bool)
    except pa.ArrowInvalid:
        good = np.array([value is None or _is_utf8(value) for value in values.to_pylist()])
        return pc.if_else(pa.array(good), values, None).cast(pa.string()), good


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _quoted(text: str) -> str:
    """A text escaped for RE2."""
    return "".join(f"\\x{{{ord(letter):x}}}" if not letter.isalnum() else letter for letter in text)


@compiled
def _ends(data: Bytes, end: Bytes) -> Any:
    """Offsets of an end marker, from left to right and without overlap; shape (found,)."""
    count = 0
    found = np.empty(len(data) // len(end), np.int64)
    at = 0
    while at + len(end) <= len(data):
        same = True
        for place in range(len(end)):
            if data[at + place] != end[place]:
                same = False
                break
        if same:
            found[count] = at
            count += 1
            at += len(end)
        else:
            at += 1
    return found[:count].copy()


_NO = -1
_MORE = -2


@inlined
def _find(data: Bytes, at: int, limit: int, literals: Bytes, low: int, high: int) -> int:
    """Offset of the next occurrence of a literal; -1 if there is none."""
    size = high - low
    while at + size <= limit:
        same = True
        for place in range(size):
            if data[at + place] != literals[low + place]:
                same = False
                break
        if same:
            return at
        at += 1
    return -1


@inlined
def _match(
    data: Bytes,
    start: int,
    limit: int,
    program: NDArray[np.int64],
    literals: Bytes,
    at_end: bool,
    places: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> tuple[int, int]:
    """Parse one record: where it ends without its last literal and with it, or `_NO` or `_MORE`."""
    sizes = np.full(3, -1, np.int64)
    at = start
    pieces = len(program)
    before_last = start
    for piece in range(pieces):
        kind, slot, low, high = program[piece, 0], program[piece, 1], program[piece, 2], program[piece, 3]
        before_last = at
        if kind == 0:
            for place in range(low, high):
                if at >= limit:
                    if at_end and piece == pieces - 1 and at == before_last:
                        return at, at
                    return (_NO, _NO) if at_end else (_MORE, _MORE)
                if data[at] != literals[place]:
                    return _NO, _NO
                at += 1
        elif kind == 1:
            sign = 1
            if at < limit and data[at] == 45:
                sign = -1
                at += 1
            value = np.int64(0)
            digits = 0
            while at < limit and 48 <= data[at] <= 57 and digits <= 18:
                value = value * 10 + np.int64(data[at] - 48)
                digits += 1
                at += 1
            if digits > 18:
                return _NO, _NO
            if at >= limit and not at_end:
                return _MORE, _MORE
            if digits == 0:
                return _NO, _NO
            numbers[piece] = sign * value
            if slot:
                sizes[slot] = sign * value
        elif kind == 2:
            if at + 4 > limit:
                return (_NO, _NO) if at_end else (_MORE, _MORE)
            value = np.int64(0)
            for place in range(4):
                value = value * 256 + np.int64(data[at + place])
            at += 4
            numbers[piece] = value - (1 << 32) if value >= 1 << 31 else value
            sizes[slot] = numbers[piece]
        elif slot:
            size = sizes[slot]
            if size < -1 or size > LONGEST_FIELD:
                return _NO, _NO
            places[piece, 0] = at if size >= 0 else -1
            at += max(size, 0)
            if at > limit:
                return (_NO, _NO) if at_end else (_MORE, _MORE)
            places[piece, 1] = at if size >= 0 else -1
        else:
            found = limit
            if piece + 1 < pieces:
                found = _find(data, at, limit, literals, program[piece + 1, 2], program[piece + 1, 3])
                if found < 0:
                    if not at_end:
                        return _MORE, _MORE
                    if piece + 2 < pieces:
                        return _NO, _NO
                    found = limit
            places[piece, 0] = at
            places[piece, 1] = found
            at = found
    if program[pieces - 1, 0] != 0:
        before_last = at
    return before_last, at


@compiled
def _walk(data: Bytes, program: NDArray[np.int64], literals: Bytes, at_end: bool) -> Any:
    """Boundaries of records, and the bytes that they use."""
    pieces = len(program)
    places = np.empty((pieces, 2), np.int64)
    numbers = np.empty(pieces, np.int64)
    starts = np.empty(len(data) + 1, np.int64)
    ends = np.empty(len(data) + 1, np.int64)
    count = 0
    at = 0
    while at < len(data):
        end, following = _match(data, at, len(data), program, literals, at_end, places, numbers)
        if end == _MORE:
            break
        if end == _NO:
            low, high = program[pieces - 1, 2], program[pieces - 1, 3]
            end = _find(data, at, len(data), literals, low, high) if program[pieces - 1, 0] == 0 else -1
            following = end + high - low
            if end < 0:
                if not at_end:
                    break
                end = following = len(data)
        starts[count] = at
        ends[count] = end
        count += 1
        at = following
    return starts[:count].copy(), ends[:count].copy(), at


@compiled
def _fields(data: Bytes, starts: Places, ends: Places, program: NDArray[np.int64], literals: Bytes) -> Any:
    """Mask of matching records; bounds of their fields, (records, pieces, 2), -1 for null; and their numbers."""
    records, pieces = len(starts), len(program)
    matched = np.zeros(records, np.bool_)
    places = np.empty((records, pieces, 2), np.int64)
    numbers = np.zeros((records, pieces), np.int64)
    for record in range(records):
        _, following = _match(
            data, starts[record], ends[record], program, literals, True, places[record], numbers[record]
        )
        matched[record] = following == ends[record]
        if not matched[record]:
            places[record] = -1
    return matched, places, numbers
