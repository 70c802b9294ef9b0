"""Layouts of JSON files.

Objects are one a line, one after another, in an array, or in the only array of objects of one object, at most two
levels down. Each is a row, a change event of Debezium, or a batch of spans or log records of OpenTelemetry.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput
from adapt.traces.sources.reading.records import Bytes, Records, compacted, line_records

GOOD, NO_OBJECT, CUT, NO_ROW = 1, -1, -2, -3
"""Values in `fields` of records."""

REASONS = {NO_OBJECT: "not a JSON object", CUT: "the object is cut off", NO_ROW: "the change has no row"}

JSON, DEBEZIUM, OTLP = "json", "debezium", "otlp"
"""What an object is: a row, a change event, or a batch."""

TIMES = {
    DEBEZIUM: {"__ts_ms": "epoch_ms"},
    OTLP: {"startTimeUnixNano": "epoch_ns", "timeUnixNano": "epoch_ns"},
}
"""Time formats of columns."""

_LEVELS = 2
"""How far down the array of the rows may be."""

_LOOKED_AT = 200
"""First lines and objects that are looked at."""

_BATCHES = {b"resourceSpans", b"resourceLogs"}
_NAME = re.compile(rb'[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*')
_ARRAY = re.compile(rb"\[\s*(?=(\{)|\])")
_OPERATION = re.compile(rb'"[crudt]"')

Path: TypeAlias = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class JsonLayout:
    """Where the rows of a JSON file are."""

    of_lines: bool = True  # whether each line is an object
    within: Path = ()  # names that lead to the array of the objects, if it is in an object
    opening: bytes = b""  # the bytes up to the first object of that array
    what: str = JSON  # what each object is

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """The objects; `lines` number the rows, unless each line is one."""
        found = line_records(data, at_end=at_end) if self.of_lines else self._objects(data, at_end=at_end)
        if self.what != OTLP:
            return found
        levels = 5 if self.within else 7
        rows = np.append(0, np.cumsum(np.maximum(_rows_within(data, found.starts, found.ends, levels), 1)))
        return Records(found.starts, found.ends, rows[:-1], found.fields, found.used, int(rows[-1]))

    def _objects(self, data: Bytes, *, at_end: bool) -> Records:
        parts, used, at = [], 0, _text_from(data, 0)
        while at < len(data):
            begins = data[at : at + len(self.opening)].tobytes()
            if begins != self.opening and begins.startswith(b"{"):
                if not at_end and self.opening.startswith(begins):
                    break
                raise BadInput(f"an object without the array {named(self.within)} follows; {_apart(self.within)}")
            begun = at + len(self.opening) * (begins == self.opening)
            starts, ends, fields, closed = _scan(data, begun, bool(self.opening), at_end)
            parts.append((starts, ends, fields))
            used = int(ends[-1]) if len(ends) else used
            if closed < 0:
                break
            after = _end_of(data, closed, 1 + len(self.within))
            if after < 0 and not at_end:
                break
            rest = data[closed : after if after > 0 else len(data)].tobytes()
            _check_only(self.within, b"".join(b'{"%s":' % name for name in self.within) + b"[" + rest)
            used = at = _text_from(data, closed + len(rest))
        starts, ends, fields = (np.concatenate(each) for each in zip(*parts, _NONE, strict=False))
        if len(fields) and fields[-1] == CUT:
            _check_cut(data.tobytes(), int(starts[-1]))
        return Records(starts, ends, np.arange(len(starts)), fields, len(data) if at_end else used, len(starts))

    def rows(self, data: Bytes, records: Records) -> tuple[Bytes, Records]:
        """The rows of these objects, one a line."""
        if self.what == JSON:
            return (data, records) if self.of_lines else compacted(data, records, spaced=True)
        made: list[tuple[bytes, int, int]] = []
        for start, end, line, kind in zip(
            *(each.tolist() for each in (records.starts, records.ends, records.lines, records.fields)), strict=True
        ):
            text = data[start:end].tobytes().strip().translate(_SPACED)
            if kind != GOOD or not text.startswith(b"{"):
                # Kafka keeps null for a deleted key
                if self.what != DEBEZIUM or text != b"null":
                    made.append((text, line, min(kind, NO_OBJECT)))
            elif self.what == DEBEZIUM:
                row = _changed(text)
                made.append((row or text, line, GOOD if row else NO_ROW))
            else:
                made += [(row, line + at, kind) for at, (row, kind) in enumerate(_unfolded(text, bool(self.within)))]
        joined = np.frombuffer(b"".join(text + b"\n" for text, _, _ in made), np.uint8)
        after = np.cumsum([len(text) + 1 for text, _, _ in made], dtype=np.int64)
        lines, fields = (np.array([each[at] for each in made], np.int64) for at in (1, 2))
        starts = np.append(0, after)[: len(made)]
        return joined, Records(starts, after - 1, lines, fields.astype(np.int32), records.used, records.used_lines)


_SPACED = bytes.maketrans(b"\r\n", b"  ")


def json_layout(head: bytes, *, whole: bool) -> JsonLayout:
    """The layout of a file that begins with objects.

    Args:
        head: Its first bytes, without a byte order mark.
        whole: Whether these are all.
    """
    text = head.lstrip()
    layout = JsonLayout(_is_of_lines(text))
    first = _first_objects(layout, text, whole=whole) or [text]
    is_batch = not _BATCHES.isdisjoint(name for name, _, _ in _members(first[0], 1))
    what = OTLP if is_batch else DEBEZIUM if any(map(_is_change, first)) else JSON
    is_row = what == DEBEZIUM or (what == OTLP and layout.of_lines)
    if is_row or len(first) > 1 or not text.startswith(b"{") or not (found := _arrays(text)):
        return replace(layout, what=what)
    within, end = next(iter(found.items()))
    _check_only(within, text)
    layout = JsonLayout(False, within, text[:end], what)
    changes = any(map(_is_change, _first_objects(layout, text, whole=whole)))
    return replace(layout, what=DEBEZIUM) if changes else layout


def _is_of_lines(text: bytes) -> bool:
    """Whether the first line, or most of the first ones, is an object."""
    lines = [line for line in text.splitlines()[:_LOOKED_AT] if line.strip()]
    return _is_object(lines[0]) or 2 * sum(map(_is_object, lines)) > len(lines)


def _is_object(text: bytes) -> bool:
    text = text.strip()
    return text.startswith(b"{") and _end_of(np.frombuffer(text, np.uint8), 0, 0) == len(text)


def _first_objects(layout: JsonLayout, text: bytes, *, whole: bool) -> list[bytes]:
    data = np.frombuffer(text, np.uint8)
    found = layout.records(data, at_end=whole).where(slice(_LOOKED_AT))
    return [data[start:end].tobytes().strip() for start, end in zip(found.starts, found.ends, strict=True)]


def named(within: Path) -> str:
    """The path to an array, with points between names."""
    return b".".join(within).decode(errors="replace")


def _apart(within: Path) -> str:
    return f"write one object per line, e.g. with `jq -c '.{named(within)}[]'`"


def _check_only(within: Path, text: bytes) -> None:
    """Check that an object has no other array of objects."""
    for other in _arrays(text):
        if other != within:
            raise BadInput(f"there are two arrays of objects, {named(within)} and {named(other)}; {_apart(within)}")


def _check_cut(text: bytes, start: int) -> None:
    """Check that an object that does not end is the last."""
    indent = text[text.rfind(b"\n", 0, start) + 1 : start]
    if not indent.strip() and b"\n" + indent + b"{" in text[start:]:
        begins = " ".join(text[start : start + 60].decode(errors="replace").split())
        raise BadInput(f"an object is never closed, but others follow; close or remove it: {begins}")


def _arrays(text: bytes) -> dict[Path, int]:
    """The place of the first object of each array of objects in an object; if there is none, of an empty array."""
    found = list(_arrays_below(text, 1, ()))
    return {path: end for path, end, filled in found if filled} or {path: end for path, end, _ in found[:1]}


def _arrays_below(text: bytes, at: int, above: Path) -> Iterator[tuple[Path, int, bool]]:
    for name, start, _ in _members(text, at):
        array = _ARRAY.match(text, start)
        if array:
            yield (*above, name), array.end(), array[1] is not None
        elif text.startswith(b"{", start) and len(above) + 1 < _LEVELS:
            yield from _arrays_below(text, start + 1, (*above, name))


def _members(text: bytes, at: int) -> Iterator[tuple[bytes, int, int]]:
    """Name, start and end of each value of an object whose names begin at a byte."""
    data = np.frombuffer(text, np.uint8)
    while member := _NAME.match(text, at):
        at = int(_end_of(data, member.end(), 0))
        if at < 0:
            at = len(text)
        yield member[1], member.end(), at


def _event(text: bytes) -> dict[bytes, bytes]:
    """The values of a change event, by name."""
    found = {name: text[start:end] for name, start, end in _members(text, 1)}
    payload = found.get(b"payload", b"")
    return {name: payload[start:end] for name, start, end in _members(payload, 1)} if payload[:1] == b"{" else found


def _is_change(text: bytes) -> bool:
    if b'"op"' not in text or not text.startswith(b"{"):
        return False
    event = _event(text)
    return _OPERATION.fullmatch(event.get(b"op", b"")) is not None and _image(event) is not None


def _image(event: dict[bytes, bytes]) -> bytes | None:
    """The row after a change, or that before it was deleted."""
    rows = (event.get(name, b"") for name in (b"after", b"before"))
    return next((row for row in rows if row.startswith(b"{") and row.endswith(b"}")), None)


def _changed(text: bytes) -> bytes | None:
    """The row of a change event, with its operation and time."""
    event = _event(text)
    row = _image(event)
    if row is None:
        return None
    comma = b"," if row[1:-1].strip() else b""
    return b'%s%s"__op":%s,"__ts_ms":%s}' % (
        *(row[:-1], comma),
        *(event.get(name) or b"null" for name in (b"op", b"ts_ms")),
    )


def _unfolded(text: bytes, is_group: bool) -> Iterator[tuple[bytes, int]]:
    """The spans or log records of a batch, or of one resource, with flat attributes, and what each is."""
    try:
        read = [json.loads(text)]
        rows = [
            json.dumps(
                {**_flat(one), **{f"resource.{key}": value for key, value in _attributes(group.get("resource"))}}
            )
            for group in (read if is_group else _objects_in(read))
            for scope in _objects_in([group])
            for one in _objects_in([scope])
        ]
    except (ValueError, TypeError, AttributeError, RecursionError):
        yield text, NO_OBJECT
        return
    yield from ((row.encode(), GOOD) for row in rows)


def _objects_in(outer: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The objects in the arrays of objects."""
    arrays = (value for each in outer for value in each.values() if isinstance(value, list))
    return (each for array in arrays for each in array if isinstance(each, dict))


def _flat(one: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in one.items() if name != "attributes" and value != {}}
    if "body" in kept:
        kept["body"] = _plain(kept["body"])
    return kept | {f"attributes.{key}": value for key, value in _attributes(one)}


def _attributes(holder: dict[str, Any] | None) -> Iterator[tuple[str, Any]]:
    for each in (holder or {}).get("attributes") or []:
        yield each.get("key"), _plain(each.get("value"))


def _plain(value: Any) -> Any:
    """The value of an `AnyValue`."""
    ((kind, held),) = (value or {"": None}).items()
    if kind == "intValue":
        return int(held)
    if kind == "arrayValue":
        return [_plain(each) for each in held.get("values", [])]
    return dict(_attributes({"attributes": held.get("values")})) if kind == "kvlistValue" else held


_NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))


def _text_from(data: Bytes, at: int) -> int:
    """The next byte that is not blank."""
    while at < len(data) and data[at] in b" \t\r\n":
        at += 1
    return at


def _scan(data: Bytes, at: int, wrapped: bool, at_end: bool) -> Any:
    """Starts, ends and kinds of objects, and the place of the bracket that ends their array, or -1.

    Args:
        wrapped: Whether a bracket ends them; else brackets are passed over.
        at_end: Whether these are the last bytes; if not, an unfinished object is not one yet.
    """
    most = 1 + sum(int(np.count_nonzero(data == byte)) for byte in b"{[]},\r\n")
    return _scanned(data, at, wrapped, at_end, most)


@compiled
def _scanned(data: Bytes, at: int, wrapped: bool, at_end: bool, most: int) -> Any:
    starts, ends, fields = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int32)
    count, n = 0, len(data)
    while at < n:
        byte = data[at]
        if byte == 44 or byte == 32 or 9 <= byte <= 13 or ((byte == 91 or byte == 93) and not wrapped):
            at += 1
            continue
        if byte == 93:
            return starts[:count], ends[:count], fields[:count], at
        start, depth = at, 0
        quoted, broken, done = False, False, False
        while at < n and not done:
            byte = data[at]
            if quoted:
                if byte == 92:
                    at += 1
                elif byte == 34:
                    quoted = False
                elif byte == 10 or byte == 13:  # ends a text that is never closed
                    quoted, broken = False, True
            elif byte == 34:
                quoted = True
            elif byte == 123 or byte == 91:
                if depth == 0 and at > start:
                    break
                depth += 1
            elif byte == 125 or byte == 93:
                if depth == 0 and (at > start or byte == 93):
                    break
                depth -= 1
                done = depth <= 0
            elif depth == 0 and (byte == 44 or byte == 10 or byte == 13):
                break
            at += 1
        at = min(at, n)
        if at == n and not done and not at_end:
            break
        end = at
        while end > start and (data[end - 1] == 32 or 9 <= data[end - 1] <= 13):
            end -= 1
        starts[count], ends[count] = start, end
        if data[start] == 123 and not done:
            fields[count] = CUT
        elif data[start] == 123 and not broken:
            fields[count] = GOOD
        else:
            fields[count] = NO_OBJECT
        count += 1
    return starts[:count], ends[:count], fields[:count], -1


@compiled
def _end_of(data: Bytes, at: int, depth: int) -> int:
    """The byte after a value, or after what closes this many levels; -1 if it is not there."""
    quoted = False
    while at < len(data):
        byte = data[at]
        if quoted:
            if byte == 92:
                at += 1
            elif byte == 34:
                quoted = False
                if depth == 0:
                    return at + 1
        elif byte == 34:
            quoted = True
        elif byte == 123 or byte == 91:
            depth += 1
        elif byte == 125 or byte == 93:
            depth -= 1
            if depth <= 0:
                return at + 1 + depth
        elif depth == 0 and (byte == 44 or byte == 32 or 9 <= byte <= 13):
            return at
        at += 1
    return -1


@compiled
def _rows_within(data: Bytes, starts: Any, ends: Any, levels: int) -> Any:
    """The number of objects at a level of arrays of objects of each record."""
    rows = np.zeros(len(starts), np.int64)
    for record in range(len(starts)):
        depth, fit, quoted = 0, 0, False
        at = starts[record]
        while at < ends[record]:
            byte = data[at]
            if quoted:
                if byte == 92:
                    at += 1
                elif byte == 34:
                    quoted = False
            elif byte == 34:
                quoted = True
            elif byte == 123 or byte == 91:
                if fit == depth and fit < levels and (byte == 91) == (depth % 2 == 1):
                    fit += 1
                    rows[record] += fit == levels
                depth += 1
            elif byte == 125 or byte == 93:
                depth -= 1
                fit = min(fit, depth)
            at += 1
    return rows
