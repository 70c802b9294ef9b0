"""Columns of a trace from plain rows that need no Spark."""

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.errors import BadInput
from adapt.core.stream import KeyType, several
from adapt.traces.ingest.mapping import AMOUNTS, RESERVED, Mapping, key_parts, shown_time
from adapt.traces.ingest.times import (
    DAY_US,
    EARLIEST_US,
    EPOCH_UNITS,
    ISO,
    LATEST_US,
    NUMBER,
    RECENT,
    UNDIGITED,
    WHOLE,
    TimeFormat,
    format_of,
    time_column_of,
    without_weekday,
)
from adapt.traces.sources.reading.blocks import PATH, PLACE
from adapt.traces.sources.reading.records import InDoubt

YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MONTH_NAME, HALF_DAY, OFFSET, ZONE, ZONE_NAME, REGION = range(-24, -12)
LONG_MONTH, ISO_ZONE, LONG_FRACTION, MAY_SECOND, FRACTION, DIGITS = range(-12, -6)
MAY_END, T_OR_SPACE, SHORT, CENTURY, WEEKDAY, SPACES = range(-6, 0)
"""Steps of a layout; other steps are the byte at that place."""

UTC = "UTC"

_FIELDS = {
    "yyyy": YEAR,
    "MM": MONTH,
    "dd": DAY,
    "HH": HOUR,
    "mm": MINUTE,
    "ss": SECOND,
    "MMM": MONTH_NAME,
    "MMMM": LONG_MONTH,
    "hh": HOUR,
    "a": HALF_DAY,
    "Z": OFFSET,
    "XXX": ZONE,
    "z": ZONE_NAME,
    "VV": REGION,
    "[:ss]": MAY_SECOND,
    "[.SSSSSS]": FRACTION,
    "SSSSSS": DIGITS,
    "[": MAY_END,
    "]": None,
}
_LONG = {"M": "MM", "d": "dd", "H": "HH", "h": "hh", "m": "mm", "s": "ss"}
"""Fields of one or two digits, and those of two."""
_NUMBER = re.compile(NUMBER, re.ASCII)
_PERHAPS_NUMBER = re.compile(
    r"\W*(0x.*|nan|inf|infinity|(\d+\.?\d*|\.\d+)(e[-+]?\d+)?[df]?)\W*", re.ASCII | re.IGNORECASE
)
"""Texts that Spark may read as a number."""
_PLAIN_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,6})?)?|[^A-Za-z+-]*")
"""Times without names, signs and zones."""
_ISO_OF_SPARK = re.compile(
    r"[^:]{4}-\d{1,2}(-\d{1,2}([T ](\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?\s*([A-Za-z+-][\w/+: -]*)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
"""What Spark's cast may read as a time."""
_PIECE = re.compile(r"\[\.S{6}\]|\[:ss\]|^E+,? +|([A-Za-z])\1*|'([^']+)'|[\[\]]|[ \-/:.,_]")

ISO_STEPS = (
    *(YEAR, ord("-"), MONTH, ord("-"), DAY, MAY_END, T_OR_SPACE),
    *(HOUR, ord(":"), MINUTE, MAY_END, ord(":"), SECOND, LONG_FRACTION, MAY_END, ISO_ZONE),
)


def layout_of(form: TimeFormat, time_zone: str) -> NDArray[np.int64] | None:
    """Steps of a time format; None if it has no plain layout.

    Args:
        form: An epoch unit has no steps.
        time_zone: Zone of times without one; unless it is UTC, only times with a zone are plain.
    """
    if form.name in EPOCH_UNITS:
        return np.zeros(0, np.int64)
    steps = ISO_STEPS if form.name == ISO else _steps(form.name)
    if steps is None or (time_zone != UTC and not {OFFSET, ZONE, ZONE_NAME, ISO_ZONE} & {*steps}):
        return None
    return np.array(steps, np.int64)


def plain_format(mapping: Mapping, columns: Sequence[str], values: pa.Array) -> TimeFormat:
    """The stated time format, or that of a sample, as in `mapping.settled_format`."""
    stated = TimeFormat(mapping.time_format)
    if stated.name and layout_of(stated, UTC) is None:
        raise InDoubt
    kind = SPARK_KINDS.get(values.type, "")
    if not kind and not stated.name:
        raise InDoubt

    def rows(tried: Sequence[str]) -> list[Any]:
        texts = [None if value is None else str(value) for value in values.to_pylist()]
        numbers = [_as_number(text) if kind == "string" else text and float(text) for text in texts]
        written = [text is not None and (kind != "string" or _NUMBER.search(text) is not None) for text in texts]
        read = (_reads(texts, name) for name in tried)
        return list(zip(values.to_pylist(), numbers, written, texts, *read, strict=True))

    try:
        return stated if stated.name else format_of(shown_time(mapping, columns), kind, rows)
    except BadInput:
        if kind in ("float", "double"):  # which Spark writes otherwise
            raise InDoubt from None
        raise


def first_times(sample: pa.Table) -> str | None:
    """The first column of times, as `times.time_column` finds it."""

    def counts(name: str) -> tuple[int, int, int]:
        texts = sample[name].drop_null().cast(pa.string()).to_pylist()
        of_text = kinds[name] == "string"
        most = max(sum(_reads(texts, form)) for form in UNDIGITED) if of_text else 0
        found = [abs(_as_number(text) or 0.0) for text in texts] if of_text else map(abs, map(float, texts))
        recent = sum(any(low <= number <= high for low, high in RECENT) for number in found)
        return len(texts), most, recent

    kinds = {field.name: SPARK_KINDS.get(field.type, "") for field in sample.schema if field.name not in PLACE}
    return time_column_of(kinds, lambda _: cache(counts))


def _as_number(text: str | None) -> float | None:
    """What Spark makes of a text as a number."""
    if text is None or not _PERHAPS_NUMBER.fullmatch(text):
        return None
    if not _NUMBER.search(text):
        raise InDoubt
    return float(text)


def _reads(texts: Sequence[str | None], form: str) -> list[bool]:
    """Which texts a format reads as times in Spark."""
    layout, written = layout_of(TimeFormat(form), UTC), _written(form)
    read = np.zeros(len(texts), np.bool_)
    if layout is not None:
        read = plain_times(pa.array(texts, pa.string()), layout, zoned=False)[1]
    for at in np.flatnonzero(~read).tolist():
        text = re.sub(r"^\[(.*)\]$", r"\1", (texts[at] or "").strip(" "))
        # numbers of fixed widths that are no date are read by nothing
        if not read[at] and written.fullmatch(text) and (layout is None or not _PLAIN_DATE.fullmatch(text)):
            raise InDoubt
    return read.tolist()


@lru_cache
def _written(form: str) -> re.Pattern[str]:
    """What texts look like that a format may read."""
    if form == ISO:
        return _ISO_OF_SPARK
    dated = without_weekday(form)
    pieces = [] if dated == form else ["(?:[A-Za-z]+,? +)?"]
    for piece in re.finditer(r"'[^']*'|([A-Za-z])\1*|.", dated):
        text = piece[0].strip("'")
        if piece[0] != text:
            pieces.append(re.escape(text))
            continue
        counted = rf"\d{{{len(text)}}}" if len(text) == 2 else r"\d+"
        known = {
            "yyyy": r"(?:\d{4}|[-+]\d{4,})",
            "MMM": "[A-Za-z]{3}",
            "MMMM": "(?:[A-Za-z]{4,9}|[Mm][Aa][Yy])",
            "a": "[A-Za-z.]+",
            "Z": "[+-].*",
        }
        known |= {"[": "(?:", "]": ")?", " ": " +", "XXX": r"(?:Z|[+-]\d\d:\d\d)"}
        known |= {"VV": r"[\w/+:-]+", "z": r"(?:[A-Za-z].*|[+-]\d\d?:.*)"}
        pieces.append(known.get(text) or (counted if text.isalpha() else re.escape(text)))
    return re.compile("".join(pieces), re.ASCII | re.DOTALL)


def _steps(pattern: str) -> tuple[int, ...] | None:
    """Steps of a Spark datetime pattern; None if it has others than these."""
    steps: list[int] = []
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return None
        text, long = piece[0], _LONG.get(piece[0], "yyyy" if piece[0] == "yy" else piece[0])
        if long in _FIELDS:
            modifiers = [] if long == text else [CENTURY] if text == "yy" else [SHORT]
            steps += [*modifiers, *(step for step in (_FIELDS[long],) if step is not None)]
        elif text[0] == "E":
            steps.append(WEEKDAY)
        elif text.isalpha():
            return None
        elif text == " " and "MMM" in pattern:
            steps.append(SPACES)
        else:
            steps += map(ord, piece[2] or text)
        at = piece.end()
    fields = [step for step in steps if step < MAY_END]
    dated = {YEAR, DAY} <= {*fields} and len({MONTH, MONTH_NAME, LONG_MONTH} & {*fields}) == 1
    halved = (HALF_DAY in fields) == ("h" in re.sub("'[^']*'", "", pattern))
    return tuple(steps) if dated and halved and len({*fields}) == len(fields) else None


Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bytes: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]

ODD, VALUE, MISSING = range(3)
"""What a quantity is: not plain, a value, empty or null."""

_DIGITS = 18
"""Most digits of a whole number; all such fit an int64."""

_NINETEEN = (1 << 63) // 10
"""Below this, one more digit fits an int64."""

_WHOLE_POWERS = 10 ** np.arange(19, dtype=np.int64)
_MONTHS = np.frombuffer(b"JanFebMarAprMayJunJulAugSepOctNovDec", np.uint8)
_LONG_MONTHS = np.frombuffer(b"".join(name.encode().ljust(12, b"\0") for name in calendar.month_name[1:]), np.uint8)
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


def plain_times(texts: pa.Array, layout: Ints, *, zoned: bool) -> tuple[Ints, Mask]:
    """Times of a layout in microseconds, and which rows have one.

    Args:
        zoned: Only times that name their zone.
    """
    times, plain = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    _times(*_text(texts), layout, zoned, times, plain)
    return times, plain


def plain_epochs(texts: pa.Array, unit_us: float) -> tuple[Ints, Mask]:
    """Numbers since 1970 in microseconds, and which rows have one.

    A fraction is plain up to whole microseconds.
    """
    times, plain = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    places = int(np.log10(max(unit_us, 1.0)))
    _epochs(*_text(texts), places, unit_us < 1.0, times, plain)
    return times, plain


def plain_decimals(texts: pa.Array) -> tuple[Floats, Bytes]:
    """Numbers without sign or space, correctly rounded, and what each row has."""
    values, kinds = _plain(texts, r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", texts, pa.float64())
    return values, np.where(np.isfinite(values), kinds, ODD)


def plain_wholes(texts: pa.Array) -> tuple[Ints, Bytes]:
    """Whole numbers without sign or space, and what each row has.

    A fraction is cut off.
    """
    whole = pc.replace_substring_regex(texts, r"\..*", "")
    return _plain(texts, rf"[0-9]{{1,{_DIGITS}}}(\.[0-9]+)?", whole, pa.int64())


def _plain(texts: pa.Array, written: str, digits: pa.Array, kind: pa.DataType) -> tuple[NDArray[Any], Bytes]:
    """The numbers of texts that match a pattern, 0 for others, and what each row has."""
    found = pc.fill_null(pc.match_substring_regex(texts, f"^(?:{written})$"), False)
    empty = pc.equal(pc.fill_null(pc.binary_length(texts), 0), 0).to_numpy(False)
    values = pc.if_else(found, digits, "0").cast(kind).to_numpy(False)
    return values, np.where(empty, MISSING, np.where(found.to_numpy(False), VALUE, ODD)).astype(np.uint8)


def _text(texts: pa.Array) -> tuple[Bytes, NDArray[np.int32], Mask]:
    """Bytes, offsets and validity of a column of `pa.string()`."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    valid = texts.is_valid().to_numpy(zero_copy_only=False)
    return np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8), ends, valid


@inlined
def _number(data: Bytes, at: int, digits: int, end: int) -> int:
    """The number of this many digits, or -1."""
    if at + digits > end:
        return -1
    number = 0
    for place in range(at, at + digits):
        digit = int(np.int64(data[place])) - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@inlined
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date of the Gregorian calendar."""
    years = year - (1 if month <= 2 else 0)
    era = years // 400
    of_era = years - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@inlined
def _month_named(data: Bytes, at: int, end: int) -> int:
    """The month of an English name of three letters, or -1."""
    if at + 3 > end:
        return -1
    for month in range(12):
        first = 3 * month
        # in capitals or not
        if (
            not (
                (data[at] ^ _MONTHS[first]) | (data[at + 1] ^ _MONTHS[first + 1]) | (data[at + 2] ^ _MONTHS[first + 2])
            )
            & 223
        ):
            return month + 1
    return -1


@inlined
def _offset_s(data: Bytes, at: int, width: int, end: int) -> int:
    """Seconds east of UTC that +hhmm (width 5) or +hh:mm (width 6) means, or -1 day."""
    wrong = -86400
    if at + width > end or (data[at] != 43 and data[at] != 45):
        return wrong
    if width == 6 and data[at + 3] != 58:
        return wrong
    hours, minutes = _number(data, at + 1, 2, end), _number(data, at + width - 2, 2, end)
    if hours < 0 or hours > 17 or minutes < 0 or minutes > 59:
        return wrong
    seconds = hours * 3600 + minutes * 60
    return -seconds if data[at] == 45 else seconds


@inlined
def _is_utc(data: Bytes, at: int, end: int) -> bool:
    """Whether UTC or GMT is at a place."""
    if at + 3 > end:
        return False
    is_utc = data[at] == 85 and data[at + 1] == 84 and data[at + 2] == 67
    is_gmt = data[at] == 71 and data[at + 1] == 77 and data[at + 2] == 84
    return bool(is_utc or is_gmt)


@inlined
def _time(data: Bytes, at: int, end: int, layout: Ints, zoned: bool) -> tuple[int, bool]:
    """The time of one text, and whether it has one."""
    year, month, day, hour, second, micros, east_s = 0, 0, 0, 0, 0, 0, 0
    has_zone, half, shorter, century = False, -1, 0, 0
    for step in layout:
        if step >= 0:
            if at >= end or data[at] != step:
                return 0, False
            at += 1
        elif step == YEAR:
            digits = 2 if century else 4
            year = _number(data, at, digits, end)
            at += digits
            if year < 0 or year + century < 1:
                return 0, False
            year += century
        elif step in (MONTH, DAY, HOUR, MINUTE, SECOND):
            digits = 1 if shorter and (at + 1 >= end or not 48 <= data[at + 1] <= 57) else 2
            shorter = 0
            number = _number(data, at, digits, end)
            at += digits
            if number < 0:
                return 0, False
            if step == MONTH:
                month = number
            elif step == DAY:
                day = number
            elif step == HOUR:
                if number > 23:
                    return 0, False
                hour = number
            else:
                if number > 59:
                    return 0, False
                second += number * 60 if step == MINUTE else number
        elif step in (MONTH_NAME, LONG_MONTH):
            month = _month_named(data, at, end)
            at += 3
            if step == LONG_MONTH and month > 0:
                for letter in _LONG_MONTHS[12 * (month - 1) + 3 : 12 * month]:
                    if letter and (at >= end or (data[at] ^ letter) & 223):
                        return 0, False
                    at += letter > 0
        elif step == T_OR_SPACE:
            if at >= end or (data[at] != 84 and data[at] != 32):
                return 0, False
            at += 1
        elif step == MAY_END:
            if at == end:
                break
        elif step == MAY_SECOND:
            if at < end and data[at] == 58:
                number = _number(data, at + 1, 2, end)
                at += 3
                if number < 0 or number > 59:
                    return 0, False
                second += number
        elif step == SHORT:
            shorter = 1
        elif step == CENTURY:
            century = 2000
        elif step == SPACES:
            first = at
            while at < end and data[at] == 32:
                at += 1
            if at == first:
                return 0, False
        elif step == WEEKDAY:
            first = at
            while at < end and 97 <= data[at] | 32 <= 122:
                at += 1
            if at > first and at < end and data[at] == 44:
                at += 1
            if at == first or at >= end or data[at] != 32:
                at = first
            while at > first and at < end and data[at] == 32:
                at += 1
        elif step == HALF_DAY:
            if at + 2 > end or data[at + 1] | 32 != 109 or (data[at] | 32 != 97 and data[at] | 32 != 112):
                return 0, False
            half = 12 if data[at] | 32 == 112 else 0
            at += 2
        elif step == ISO_ZONE:
            while at < end and data[at] == 32:
                at += 1
            left = end - at
            if left == 1 and data[at] == 90:
                east_s = 0
            elif left == 3 and data[at] > 57:
                if not _is_utc(data, at, end):
                    return 0, False
            elif left == 3:
                hours = _number(data, at + 1, 2, end)
                if hours < 0 or hours > 17 or (data[at] != 43 and data[at] != 45):
                    return 0, False
                east_s = hours * 3600 if data[at] == 43 else -hours * 3600
            else:
                east_s = _offset_s(data, at, 6 if left == 6 else 5, end)
                if east_s == -86400 or left > 6:
                    return 0, False
            has_zone = True
            at = end
        elif step in (ZONE_NAME, REGION):
            if not _is_utc(data, at, end) or east_s:
                return 0, False
            has_zone = True
            at += 3
        elif step in (FRACTION, DIGITS, LONG_FRACTION):
            if step == DIGITS or (at < end and data[at] == 46):
                at += step != DIGITS
                scale = 1_000_000
                while at < end and scale > 1 and 48 <= data[at] <= 57:
                    scale //= 10
                    micros += (int(np.int64(data[at])) - 48) * scale
                    at += 1
                if scale == 1_000_000:
                    return 0, False
                while step == LONG_FRACTION and at < end and 48 <= data[at] <= 57:
                    at += 1
        elif step == ZONE and at < end and data[at] == 90:
            has_zone = True
            at += 1
        else:
            width = 6 if step == ZONE else 5
            east_s = _offset_s(data, at, width, end)
            if east_s == -86400:
                return 0, False
            has_zone = True
            at += width
    if half >= 0:
        if hour < 1 or hour > 12:
            return 0, False
        hour = hour % 12 + half
    if at != end or month < 1 or month > 12 or day < 1 or (zoned and not has_zone):
        return 0, False
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month - 1] + (1 if leap else 0):
        return 0, False
    return (_days(year, month, day) * 86400 + hour * 3600 + second - east_s) * 1_000_000 + micros, True


@compiled
def _times(
    data: Bytes, ends: NDArray[np.int32], valid: Mask, layout: Ints, zoned: bool, times: Ints, plain: Mask
) -> Any:
    for row in range(len(valid)):
        if valid[row]:
            at, end = int(ends[row]), int(ends[row + 1])
            while at < end and data[at] == 32:
                at += 1
            while at < end and data[end - 1] == 32:
                end -= 1
            if at < end and data[at] == 91 and data[end - 1] == 93:
                at, end = at + 1, end - 1
            times[row], plain[row] = _time(data, at, end, layout, zoned)


@inlined
def _digits(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Number in the digits from `at` on, at most `_DIGITS`, and the place after them."""
    number = 0
    last = min(end, at + _DIGITS)
    while at < last and 48 <= data[at] <= 57:
        number = number * 10 + int(np.int64(data[at])) - 48
        at += 1
    return number, at


@compiled
def _epochs(
    data: Bytes,
    ends: NDArray[np.int32],
    valid: Mask,
    places: int,
    nanoseconds: bool,
    times: Ints,
    plain: Mask,
) -> Any:
    most = _WHOLE_POWERS[_DIGITS - places]
    for row in range(len(valid)):
        if not valid[row]:
            continue
        at, end = int(ends[row]), int(ends[row + 1])
        negative = at < end and data[at] == 45
        if negative:
            at += 1
        whole, after = _digits(data, at, end)
        if after == at or (whole >= most and not nanoseconds):
            continue
        if nanoseconds and after < end and 48 <= data[after] <= 57 and whole < _NINETEEN:
            whole = 10 * whole + int(np.int64(data[after])) - 48
            after += 1
        micros = whole * _WHOLE_POWERS[places]
        if after < end and data[after] == 46 and not negative:
            fraction, last = _digits(data, after + 1, min(end, after + 1 + places))
            micros += fraction * _WHOLE_POWERS[places - (last - after - 1)]
            after = last if last > after + 1 else after
        if after != end:
            continue
        if negative:
            micros = -micros
        times[row] = micros // 1000 if nanoseconds else micros
        plain[row] = True


PLACES = {"_file": pa.int32(), "_line": pa.int64()}
"""The place of a row in the source, which breaks ties of time."""

TIME = pa.timestamp("us", UTC)

LEAST_PLAIN = 0.9
"""Share of the first rows that must be plain, since the others cost more."""

_KINDS = {
    "ts": TIME,
    "stream": pa.string(),
    "cost_us": pa.float64(),
    "bytes": pa.int64(),
    "partition": pa.int32(),
}

_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_NUMBERS = (*_WHOLE, pa.float32(), pa.float64())
_STORED = {
    **dict.fromkeys(_WHOLE, pa.int64()),
    **dict.fromkeys((pa.string(), pa.bool_(), pa.date32()), pa.string()),
    pa.binary(): pa.binary(),
}
"""Types of keys, and those in which a trace keeps them."""

SPARK_KINDS = {
    pa.string(): "string",
    **dict(zip(_WHOLE, reversed(WHOLE), strict=True)),
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    TIME: "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
"""Spark's short names of types."""

_KEPT = (*_STORED, *_NUMBERS, TIME, pa.timestamp("us"))

_UNREAD = re.compile(r"[\x00-/:-\x7f]*")
"""Texts that no format reads as a time."""


class _Verdicts:
    """Why rows of a batch are rejected, and which need Spark."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._known = batch.column("_reason").is_null().to_numpy(False)
        self.plain = self._known.copy()
        self._words: list[str | None] = [None]
        self._reasons = np.zeros(len(batch), np.int8)

    def unsure(self, rows: Mask) -> None:
        """Leave rows to Spark, unless they are rejected already."""
        self.plain &= ~rows

    def refuse(self, rows: Mask, reason: str) -> None:
        """Reject rows that have been plain so far."""
        if (rows := rows & self.plain).any():
            self._words.append(reason)
            self._reasons[rows] = len(self._words) - 1
            self.plain[rows] = False

    def reasons(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the reasons."""
        if len(self._words) == 1:
            return batch
        found = pa.array(self._words, pa.string()).take(pa.array(self._reasons))
        at = batch.schema.get_field_index("_reason")
        return batch.set_column(at, batch.schema.field(at), pc.coalesce(batch.column(at), found))


@dataclass(frozen=True, slots=True)
class Sieve:
    """How plain rows become rows of the trace; sent to Spark tasks."""

    mapping: Mapping  # source columns of the trace's columns
    layout: NDArray[np.int64]  # steps of the times; see `layout_of`
    form: TimeFormat
    zoned: bool  # only times that name their zone are plain
    kinds: dict[str, pa.DataType]  # types of the source columns and expressions
    keys: tuple[str, ...]  # those of the key
    kept: dict[str, str]  # columns or expressions to keep, by name in the trace
    read: tuple[str, ...]  # source columns that it reads

    @property
    def columns(self) -> dict[str, str]:
        """Source columns or expressions by column of the trace, in its order."""
        mapping = self.mapping
        texts = (mapping.time, mapping.key, mapping.stream, mapping.cost, mapping.bytes, mapping.partition)
        own = dict(zip(RESERVED, texts, strict=True))
        return {name: source for name, source in own.items() if source} | self.kept

    @property
    def key_type(self) -> KeyType:
        """Type of the key."""
        names = {pa.bool_(): "boolean", pa.date32(): "date"}
        types = [KeyType(names.get(self.kinds[name], str(self.kinds[name]))) for name in self.keys]
        return types[0] if len(types) == 1 else KeyType(several(types))

    @property
    def schema(self) -> pa.Schema:
        """Schema of the trace."""
        key = pa.string() if len(self.keys) > 1 else _STORED[self.kinds[self.keys[0]]]
        kinds = {**_KINDS, "key": key}
        return pa.schema([(name, kinds.get(name) or self.kinds[source]) for name, source in self.columns.items()])

    def fits(self, sample: pa.Table) -> bool:
        """Whether most rows of a sample are plain."""
        others = sum(self.sifted(batch)[1]["_reason"].null_count for batch in sample.to_batches())
        return bool(others <= (1 - LEAST_PLAIN) * len(sample))

    def sifted(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The plain rows as in the trace, and the others as read.

        Those that are rejected have their reason.
        """
        columns, verdicts = {"ts": "", **self.columns}, _Verdicts(batch)
        made = {"ts": pa.array(np.zeros(len(batch), np.int64)).view(TIME)}
        if columns["ts"]:
            made["ts"] = self._times(value_of(columns["ts"], batch), verdicts)
        made["key"] = self._keys(batch, verdicts)
        for name, (column, _) in AMOUNTS.items():
            if column in columns:
                made[column] = self._amounts(name, value_of(columns[column], batch), _KINDS[column], verdicts)
        if "stream" in columns:
            made["stream"] = value_of(columns["stream"], batch).cast(pa.string())
        arrays = [
            *(batch.column(name) for name in PLACES),
            *(made[name] if name in made else value_of(source, batch) for name, source in columns.items()),
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=with_places(self.schema))
        if verdicts.plain.all():
            return rows, batch.slice(0, 0)
        mask = pa.array(verdicts.plain)
        return rows.filter(mask), verdicts.reasons(batch).filter(pc.invert(mask))

    def _times(self, values: pa.Array, verdicts: _Verdicts) -> pa.Array:
        """Times as in the trace."""
        if values.type == pa.date32():
            verdicts.unsure(_beyond(values))
            numbers, known = _numbers(values.view(pa.int32()))
            numbers = numbers.astype(np.int64) * DAY_US
        elif pa.types.is_timestamp(values.type):
            numbers, known = _numbers(values.view(pa.int64()))
        elif values.type in _NUMBERS and self.form.name in EPOCH_UNITS:
            numbers, known = _epochs_of_numbers(values, EPOCH_UNITS[self.form.name], verdicts)
        else:
            values = values.cast(pa.string())
            if self.form.name in EPOCH_UNITS:
                numbers, known = plain_epochs(values, EPOCH_UNITS[self.form.name])
            else:
                numbers, known = plain_times(values, self.layout, zoned=self.zoned)
            if not known.all():
                at = np.flatnonzero(~known)
                texts = values.take(pa.array(at)).to_pylist()
                missing = np.zeros(len(known), np.bool_)
                missing[at] = [text is None or not text.strip(" ") for text in texts]
                unread = np.zeros(len(known), np.bool_)
                unread[at] = [text is not None and _UNREAD.fullmatch(text) is not None for text in texts]
                verdicts.refuse(missing, "time is missing")
                verdicts.refuse(unread, "time cannot be read")
                verdicts.unsure(~known)
        verdicts.refuse(~known, "time is missing")
        verdicts.refuse((numbers < EARLIEST_US) | (numbers > LATEST_US), "time cannot be read")
        return pa.array(numbers).view(TIME)

    def _keys(self, batch: pa.RecordBatch, verdicts: _Verdicts) -> pa.Array:
        """Keys as in the trace."""
        values = [value_of(text, batch) for text in self.keys]
        for each in values:
            if each.type == pa.date32():
                verdicts.unsure(_beyond(each))
        if len(values) == 1:
            return values[0].cast(_STORED[values[0].type])
        parts = [_json(each, verdicts) for each in values]
        return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*parts, ","), "]", "")

    def _amounts(self, name: str, values: pa.Array, kind: pa.DataType, verdicts: _Verdicts) -> pa.Array:
        """A quantity as in the trace: missing, or finite and not negative."""
        factor = self.mapping.us_per_cost if name == "cost" else 1
        most = None if name == "cost" else np.iinfo(kind.to_pandas_dtype()).max
        numbers: NDArray[Any]
        if values.type == pa.string():
            numbers, kinds = plain_decimals(values) if most is None else plain_wholes(values)
            verdicts.unsure(kinds == ODD)
            known = kinds == VALUE
        else:
            numbers, known = _numbers(values)
        if most is None:
            with np.errstate(over="ignore"):
                numbers = numbers.astype(np.float64)
                numbers = numbers if factor == 1 else numbers * float(factor.numerator) / float(factor.denominator)
        infinite = ~np.isfinite(numbers)
        if values.type == pa.string():
            verdicts.unsure(infinite)
            verdicts.unsure(numbers > (np.inf if most is None else most))
        verdicts.refuse(infinite & known, f"{name} is not finite")
        verdicts.refuse((numbers < 0) & known, f"{name} is negative")
        if most is None:
            return pa.array(numbers, mask=~known)
        # a double has no largest int64, but 2^63
        beyond = numbers >= float(most) + (most < 1 << 53) if numbers.dtype.kind == "f" else numbers > most
        verdicts.refuse(beyond & known, f"{name} is too large")
        numbers = np.where(beyond | infinite | ~known, 0, numbers)
        return pa.array(numbers.astype(kind.to_pandas_dtype()), mask=~known)


def _beyond(days: pa.Array) -> Mask:
    """Which days are not in the years 1 to 9999."""
    numbers = _numbers(days.view(pa.int32()))[0]
    outside: Mask = (numbers < EARLIEST_US // DAY_US) | (numbers > LATEST_US // DAY_US)
    return outside


def _numbers(values: pa.Array) -> tuple[NDArray[Any], Mask]:
    """The numbers of a column, 0 for null, and which rows have one."""
    known = values.is_valid().to_numpy(False)
    return pc.fill_null(values, 0).to_numpy(False) if values.null_count else values.to_numpy(False), known


def _epochs_of_numbers(values: pa.Array, unit_us: float, verdicts: _Verdicts) -> tuple[Ints, Mask]:
    """Numbers since 1970 in microseconds, and which rows have one; leaves to Spark what a double does not decide."""
    numbers, known = _numbers(values)
    if values.type in _WHOLE:
        numbers = numbers.astype(np.int64)
        if unit_us < 1:
            return numbers // 1000, known
        verdicts.unsure(np.abs(numbers.astype(np.float64) * unit_us) >= 9.2e18)
        return numbers * np.int64(unit_us), known
    micros = numbers.astype(np.float64) * unit_us
    whole = np.rint(micros)
    # Spark rounds the decimal digits of the number, which differ from it by less than the rest
    sure = (np.abs(micros) < 1 << 51) & (np.abs(micros - whole) <= 0.25)
    verdicts.unsure(~sure)
    return np.where(sure, whole, 0).astype(np.int64), known


def _json(values: pa.Array, verdicts: _Verdicts) -> pa.Array:
    """Values of a key's column in a JSON array."""
    if values.type in _WHOLE:
        return pc.fill_null(values.cast(pa.string()), "null")
    if values.type == pa.binary():
        texts = pa.array([None if each is None else each.hex().upper() for each in values.to_pylist()], pa.string())
    else:
        texts = values.cast(pa.string())
    verdicts.unsure(pc.fill_null(pc.match_substring_regex(texts, r"[\x00-\x1f]"), False).to_numpy(False))
    for mark in ("\\", '"'):
        texts = pc.replace_substring(texts, mark, f"\\{mark}")
    return pc.fill_null(pc.binary_join_element_wise('"', texts, '"', ""), "null")


def with_places(schema: pa.Schema) -> pa.Schema:
    """Schema of rows with their places and times."""
    return pa.schema([*PLACES.items(), ("ts", TIME), *(field for field in schema if field.name != "ts")])


def sieve_of(mapping: Mapping, form: TimeFormat, time_zone: str, source: pa.Schema) -> Sieve | None:
    """The sieve of a mapping; None if no row is plain.

    Args:
        form: Format of the times.
        time_zone: Zone of times without one.
        source: Columns of the source, with the types that Spark gives them.
    """
    layout = layout_of(form, time_zone) if mapping.time else np.zeros(0, np.int64)
    keys = tuple(key_parts(mapping.key, source.names))
    own = {name: text for name, text in mapping.expressions().items() if name != "key"}
    kept = mapping.kept([name for name in source.names if name != PATH])
    named = (*own.values(), *keys, *kept.values())
    if layout is None or mapping.dedup:
        return None
    nothing = pa.RecordBatch.from_pylist([], source)
    try:
        read = tuple(dict.fromkeys(name for text in named for name in read_for(text, source)))
        kinds = {text: value_of(text, nothing).type for text in named}
    except InDoubt:
        return None
    zoneless, time = (pa.timestamp("us"), pa.date32()), kinds.get(mapping.time, TIME)
    fit = (
        *(kinds[name] in _STORED for name in keys),
        *(kinds[name] in _KEPT or pa.types.is_decimal(kinds[name]) for name in kept.values()),
        *(kinds[own[name]] in (pa.string(), *_NUMBERS) for name in AMOUNTS if name in own),
        time in (pa.string(), *_NUMBERS, TIME, *(zoneless if time_zone == UTC else ())),
        time not in _NUMBERS[-2:] or form.name in EPOCH_UNITS,
        kinds.get(mapping.stream, pa.string()) in (pa.string(), pa.bool_(), *_WHOLE),
    )
    return Sieve(mapping, layout, form, time_zone != UTC, kinds, keys, kept, read) if all(fit) else None


def read_for(text: str, source: pa.Schema) -> list[str]:
    """Source columns that an expression reads."""
    if text in source.names:
        return [text]
    from adapt.traces.ingest.expressions import names

    return names(text, source)


def value_of(text: str, rows: pa.RecordBatch) -> pa.Array:
    """The values of a source column or of an expression."""
    if text in rows.schema.names:
        return rows.column(text)
    from adapt.traces.ingest.expressions import evaluated

    return evaluated(text, rows)
