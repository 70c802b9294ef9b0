"""Columns of a trace from plain rows that need no Spark."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.traces.ingest.mapping import RESERVED, Mapping
from adapt.traces.ingest.times import EARLIEST_US, EPOCH_UNITS, ISO, LATEST_US, TimeFormat
from adapt.traces.sources.reading.blocks import PATH

YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MONTH_NAME, OFFSET, ISO_ZONE, FRACTION, T_OR_SPACE, MAY_END = range(-12, 0)
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
    "Z": OFFSET,
    "[.SSSSSS]": FRACTION,
    "[": MAY_END,
    "]": None,
}
_PIECE = re.compile(r"\[\.S{6}\]|([A-Za-z])\1*|[\[\]]|[ \-/:.,_]")

_ISO_STEPS = (
    *(YEAR, ord("-"), MONTH, ord("-"), DAY, MAY_END, T_OR_SPACE),
    *(HOUR, ord(":"), MINUTE, ord(":"), SECOND, FRACTION, ISO_ZONE),
)


def layout_of(form: TimeFormat, time_zone: str) -> NDArray[np.int64] | None:
    """Steps of a time format; None if it has no plain layout.

    Args:
        form: An epoch unit has no steps.
        time_zone: Zone of times without one; unless it is UTC, only times with a zone are plain.
    """
    if form.name in EPOCH_UNITS:
        return np.zeros(0, np.int64)
    steps = _ISO_STEPS if form.name == ISO else _steps(form.name)
    if steps is None or (time_zone != UTC and OFFSET not in steps and ISO_ZONE not in steps):
        return None
    return np.array(steps, np.int64)


def plain_format(stated: str, sample: pa.ChunkedArray) -> TimeFormat | None:
    """The stated time format, or that of a sample; None if unsure.

    ISO 8601 where it reads all of the sample, so that no other format reads more.
    """
    if stated:
        return TimeFormat(stated) if layout_of(TimeFormat(stated), "") is not None else None
    texts = sample.combine_chunks().drop_null()
    plain = plain_times(texts, np.array(_ISO_STEPS, np.int64), zoned=False)[1]
    return TimeFormat(ISO, guessed=True) if len(texts) and plain.all() else None


def _steps(pattern: str) -> tuple[int, ...] | None:
    """Steps of a Spark datetime pattern; None if it has others than these."""
    steps: list[int] = []
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return None
        text = piece[0]
        if text in _FIELDS:
            steps += [step for step in (_FIELDS[text],) if step is not None]
        elif text.isalpha():
            return None
        else:
            steps.append(ord(text))
        at = piece.end()
    fields = [step for step in steps if step < MAY_END]
    dated = {YEAR, DAY} <= {*fields} and len({MONTH, MONTH_NAME} & {*fields}) == 1
    return tuple(steps) if dated and len({*fields}) == len(fields) else None


Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bytes: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]

ODD, VALUE, MISSING, LONG = range(4)
"""What a quantity is: not plain, a value, empty or null, or a number of many digits."""

_DIGITS = 18
"""Most digits of a whole number; all such fit an int64."""

_EXACT_DIGITS = 15
"""Most digits of a decimal that is one exact division."""

_POWERS = 10.0 ** np.arange(23)
_WHOLE_POWERS = 10 ** np.arange(19, dtype=np.int64)
_MONTHS = np.frombuffer(b"JanFebMarAprMayJunJulAugSepOctNovDec", np.uint8)
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
    values, kinds = np.zeros(len(texts), np.float64), np.zeros(len(texts), np.uint8)
    _decimals(*_text(texts), values, kinds)
    long = np.flatnonzero(kinds == LONG)
    if len(long):
        values[long] = texts.take(pa.array(long)).cast(pa.float64()).to_numpy()
        kinds[long] = np.where(np.isfinite(values[long]), VALUE, ODD)
    return values, kinds


def plain_wholes(texts: pa.Array) -> tuple[Ints, Bytes]:
    """Whole numbers without sign or space, and what each row has.

    A fraction is cut off.
    """
    values, kinds = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.uint8)
    _wholes(*_text(texts), values, kinds)
    return values, kinds


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
        if data[at] == _MONTHS[first] and data[at + 1] == _MONTHS[first + 1] and data[at + 2] == _MONTHS[first + 2]:
            return month + 1
    return -1


@inlined
def _offset_s(data: Bytes, at: int, width: int, end: int) -> int:
    """Seconds east of UTC that +hhmm (width 5) or +hh:mm (width 6) means, or -1 day."""
    wrong = -86400
    if at + width != end or (data[at] != 43 and data[at] != 45):
        return wrong
    if width == 6 and data[at + 3] != 58:
        return wrong
    hours, minutes = _number(data, at + 1, 2, end), _number(data, at + width - 2, 2, end)
    if hours < 0 or hours > 17 or minutes < 0 or minutes > 59:
        return wrong
    seconds = hours * 3600 + minutes * 60
    return -seconds if data[at] == 45 else seconds


@inlined
def _time(data: Bytes, at: int, end: int, layout: Ints, zoned: bool) -> tuple[int, bool]:
    """The time of one text, and whether it has one."""
    year, month, day, second, micros, east_s = 0, 0, 0, 0, 0, 0
    has_zone = False
    for step in layout:
        if step >= 0:
            if at >= end or data[at] != step:
                return 0, False
            at += 1
        elif step == YEAR:
            year = _number(data, at, 4, end)
            at += 4
            if year < 1:
                return 0, False
        elif step in (MONTH, DAY, HOUR, MINUTE, SECOND):
            number = _number(data, at, 2, end)
            at += 2
            if number < 0:
                return 0, False
            if step == MONTH:
                month = number
            elif step == DAY:
                day = number
            elif step == HOUR:
                if number > 23:
                    return 0, False
                second += number * 3600
            else:
                if number > 59:
                    return 0, False
                second += number * 60 if step == MINUTE else number
        elif step == MONTH_NAME:
            month = _month_named(data, at, end)
            at += 3
        elif step == T_OR_SPACE:
            if at >= end or (data[at] != 84 and data[at] != 32):
                return 0, False
            at += 1
        elif step == MAY_END:
            if at == end:
                break
        elif step == FRACTION:
            if at < end and data[at] == 46:
                at += 1
                scale = 1_000_000
                while at < end and scale > 1 and 48 <= data[at] <= 57:
                    scale //= 10
                    micros += (int(np.int64(data[at])) - 48) * scale
                    at += 1
                if scale == 1_000_000:
                    return 0, False
        elif step == ISO_ZONE and (at == end or (data[at] == 90 and at + 1 == end)):
            has_zone = at < end
            at = end
        else:
            east_s = _offset_s(data, at, 6 if step == ISO_ZONE else 5, end)
            if east_s == -86400:
                return 0, False
            has_zone = True
            at = end
    if at != end or month < 1 or month > 12 or day < 1 or (zoned and not has_zone):
        return 0, False
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month - 1] + (1 if leap else 0):
        return 0, False
    return (_days(year, month, day) * 86400 + second - east_s) * 1_000_000 + micros, True


@compiled
def _times(
    data: Bytes, ends: NDArray[np.int32], valid: Mask, layout: Ints, zoned: bool, times: Ints, plain: Mask
) -> Any:
    for row in range(len(valid)):
        if valid[row]:
            times[row], plain[row] = _time(data, int(ends[row]), int(ends[row + 1]), layout, zoned)


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
        if after == at or whole >= most:
            continue
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


@inlined
def _past_digits(data: Bytes, at: int, end: int) -> int:
    """The place after the digits from `at` on."""
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at


@inlined
def _is_decimal(data: Bytes, at: int, end: int) -> bool:
    """Whether a text is digits, then perhaps a point with digits, then perhaps an exponent."""
    after = _past_digits(data, at, end)
    if after == at:
        return False
    if after < end and data[after] == 46:
        at = after + 1
        after = _past_digits(data, at, end)
        if after == at:
            return False
    if after < end and (data[after] == 101 or data[after] == 69):
        at = after + 1
        if at < end and (data[at] == 43 or data[at] == 45):
            at += 1
        after = _past_digits(data, at, end)
        if after == at:
            return False
    return after == end


@compiled
def _decimals(data: Bytes, ends: NDArray[np.int32], valid: Mask, values: Floats, kinds: Bytes) -> Any:
    for row in range(len(valid)):
        at, end = int(ends[row]), int(ends[row + 1])
        if not valid[row] or at == end:
            kinds[row] = MISSING
            continue
        whole, point = _digits(data, at, end)
        fraction, last, places = 0, point, 0
        if point > at and point < end and data[point] == 46:
            fraction, last = _digits(data, point + 1, end)
            places = last - point - 1
        if last == end and point > at and (last == point or places > 0) and point - at + places <= _EXACT_DIGITS:
            values[row] = np.float64(whole * _WHOLE_POWERS[places] + fraction) / _POWERS[places]
            kinds[row] = VALUE
        else:
            kinds[row] = LONG if _is_decimal(data, at, end) else ODD


@compiled
def _wholes(data: Bytes, ends: NDArray[np.int32], valid: Mask, values: Ints, kinds: Bytes) -> Any:
    for row in range(len(valid)):
        at, end = int(ends[row]), int(ends[row + 1])
        if not valid[row] or at == end:
            kinds[row] = MISSING
            continue
        values[row], point = _digits(data, at, end)
        last = point
        if point > at and point < end and data[point] == 46:
            _, last = _digits(data, point + 1, end)
            if last == point + 1:
                last = point
        if point > at and last == end:
            kinds[row] = VALUE


PLACES = {"_file": pa.int32(), "_line": pa.int64()}
"""The place of a row in the source, which breaks ties of time."""

TIME = pa.timestamp("us", UTC)

LEAST_PLAIN = 0.9
"""Share of the first rows that must be plain, since the others cost more."""

_KINDS = {
    "ts": TIME,
    "key": pa.string(),
    "stream": pa.string(),
    "cost_us": pa.float64(),
    "bytes": pa.int64(),
    "partition": pa.int32(),
}


@dataclass(frozen=True, slots=True)
class Sieve:
    """How plain rows become rows of the trace; sent to Spark tasks."""

    mapping: Mapping  # source columns of the trace's columns
    layout: NDArray[np.int64]  # steps of the times; see `layout_of`
    form: TimeFormat
    zoned: bool  # only times that name their zone are plain

    @property
    def columns(self) -> dict[str, str]:
        """Source columns by column of the trace, in its order."""
        mapping = self.mapping
        texts = (mapping.time, mapping.key, mapping.stream, mapping.cost, mapping.bytes, mapping.partition)
        own = dict(zip(RESERVED, texts, strict=True))
        return {**{name: source for name, source in own.items() if source}, **{name: name for name in mapping.keep}}

    @property
    def schema(self) -> pa.Schema:
        """Schema of the trace."""
        return pa.schema([(name, _KINDS.get(name, pa.string())) for name in self.columns])

    @property
    def read(self) -> list[str]:
        """Source columns that it reads."""
        return list(dict.fromkeys(self.columns.values()))

    def fits(self, sample: pa.Table) -> bool:
        """Whether most rows of a sample are plain."""
        plain = sum(len(self.sifted(batch)[0]) for batch in sample.to_batches())
        return plain >= LEAST_PLAIN * len(sample)

    def sifted(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The plain rows as in the trace, and the others as read."""
        columns = {"ts": "", **self.columns}
        times, plain = np.zeros(len(batch), np.int64), np.ones(len(batch), np.bool_)
        if columns["ts"]:
            times, plain = self._times(batch.column(columns["ts"]))
        plain &= (times >= EARLIEST_US) & (times <= LATEST_US) & batch.column("_reason").is_null().to_numpy(False)
        made: dict[str, pa.Array] = {"ts": pa.array(times).view(TIME)}
        if "cost_us" in columns:
            factor = self.mapping.us_per_cost
            costs, kinds = plain_decimals(batch.column(columns["cost_us"]))
            with np.errstate(over="ignore"):
                costs = costs if factor == 1 else costs * float(factor.numerator) / float(factor.denominator)
            plain &= (kinds != ODD) & np.isfinite(costs)
            made["cost_us"] = pa.array(costs, mask=kinds != VALUE)
        for name in {"bytes", "partition"} & columns.keys():
            numbers, kinds = plain_wholes(batch.column(columns[name]))
            most = np.iinfo(_KINDS[name].to_pandas_dtype()).max
            plain &= (kinds != ODD) & (numbers <= most)
            made[name] = pa.array(np.minimum(numbers, most), _KINDS[name], mask=kinds != VALUE)
        arrays = [
            *(batch.column(name) for name in PLACES),
            *(made[name] if name in made else batch.column(source) for name, source in columns.items()),
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=with_places(self.schema))
        if plain.all():
            return rows, batch.slice(0, 0)
        mask = pa.array(plain)
        return rows.filter(mask), batch.filter(pc.invert(mask))

    def _times(self, texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if self.form.name in EPOCH_UNITS:
            return plain_epochs(texts, EPOCH_UNITS[self.form.name])
        return plain_times(texts, self.layout, zoned=self.zoned)


def with_places(schema: pa.Schema) -> pa.Schema:
    """Schema of rows with their places and times."""
    return pa.schema([*PLACES.items(), ("ts", TIME), *(field for field in schema if field.name != "ts")])


def sieve_of(mapping: Mapping, form: TimeFormat, time_zone: str, texts: Sequence[str]) -> Sieve | None:
    """The sieve of a mapping; None if no row is plain.

    Args:
        form: Format of the times.
        time_zone: Zone of times without one.
        texts: Source columns of text.
    """
    layout = layout_of(form, time_zone)
    named = (*mapping.expressions().values(), *mapping.keep)
    if layout is None or mapping.dedup or not {*named} <= {*texts, PATH}:
        return None
    return Sieve(mapping, layout, form, zoned=time_zone != UTC)
