"""Values of typed keys: dates, times, decimals and several columns as text."""

import json
import re
from collections.abc import Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.keys.columns import KeyBytes, key_bytes, read_only
from adapt.core.stream import COLUMN_TYPES, KeyType

_DAY = r"[+-]?\d{4,6}-\d\d-\d\d"
_TIME = rf"{_DAY} \d\d:\d\d:\d\d(\.\d{{1,6}})?"
_FORMS = {
    KeyType.BOOLEAN: "true|false",
    KeyType.DATE: _DAY,
    KeyType.TIMESTAMP: _TIME,
    KeyType.TIMESTAMP_NTZ: _TIME,
    KeyType.BINARY: r"([0-9a-fA-F]{2})*",
}
_DECIMAL = r"-?\d+(\.\d+)?(E[+-]?\d+)?"
_BLOCK = 512
"""Keys that are parsed as one: fewer lists than make Python collect garbage."""

_UNITS = {KeyType.DATE: "datetime64[D]", KeyType.TIMESTAMP: "datetime64[us]", KeyType.TIMESTAMP_NTZ: "datetime64[us]"}
_EXACT = Context(prec=80, traps=[Inexact, InvalidOperation, Overflow])
_SIZES = {KeyType.INT64: 8, KeyType.TIMESTAMP: 8, KeyType.TIMESTAMP_NTZ: 8}
_SIZES |= {KeyType.INT8: 4, KeyType.INT16: 4, KeyType.INT32: 4, KeyType.DATE: 4}
_LIMITS = {KeyType.INT8: 1 << 7, KeyType.INT16: 1 << 15, KeyType.INT32: 1 << 31, KeyType.INT64: 1 << 63}


def is_key_of(value: Any, key_type: KeyType) -> bool:
    """Whether a value is of a type of one column."""
    if key_type in _LIMITS:
        limit = _LIMITS[key_type]
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if not isinstance(value, str):
        return False
    form = _form_of(key_type)
    if form is None:
        return is_unicode(value)
    return form.fullmatch(value) is not None and _have_values([value], key_type)


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can express text: it has no lone surrogates."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


@cache
def _form_of(key_type: KeyType) -> re.Pattern[str] | None:
    form = _DECIMAL if key_type.precision else _FORMS.get(key_type)
    return re.compile(form, re.ASCII) if form else None


def _have_values(values: Sequence[str], key_type: KeyType) -> bool:
    """Whether dates or times in their form are in the calendar, and decimals have no more digits than their type."""
    try:
        if key_type in _UNITS:
            np.array(values, "datetime64[us]")
        elif key_type.precision and len(values) > 1:
            pa.array(values, pa.large_string()).cast(pa.decimal128(*key_type.precision))
            return not any("E" in value for value in values)  # Arrow may wrap these: they are looked at one by one
        elif key_type.precision and values:
            digits, scale = key_type.precision
            number = _scaled(values[0], scale)
            return abs(number) < 10**digits and number == number.to_integral_value()
    except (ValueError, ArithmeticError):
        return False
    return True


def row_of(text: Any, key_type: KeyType) -> tuple[Any, ...] | None:
    """Values of one key; None if the text is no such key."""
    if not key_type.columns:
        return (text,) if is_key_of(text, key_type) else None
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, list) or len(row) != len(key_type.columns):
        return None
    fits = all(each is None or is_key_of(each, kind) for each, kind in zip(row, key_type.columns, strict=True))
    return tuple(row) if fits else None


def are_of(keys: pa.Array, key_type: KeyType) -> bool:
    """Whether all keys of a column are of a type."""
    if key_type in COLUMN_TYPES:
        return True
    if key_type.storage is KeyType.STRING:
        present = key_bytes(keys.drop_null())
        return len(columns_of(present, key_type)[0]) == len(present)
    least, most = pc.min_max(keys).values()
    return not least.is_valid or all(is_key_of(each.as_py(), key_type) for each in (least, most))


def columns_of(keys: KeyBytes, key_type: KeyType) -> tuple[NDArray[np.intp], list[list[Any]]]:
    """Which keys are of a type, and their values by column.

    Args:
        keys: Without nulls.

    Returns:
        The rows of those keys, shape (such keys,), and of each column the values.
    """
    kinds = key_type.columns or (key_type,)
    columns = _in_bulk(keys, kinds)
    if columns is not None:
        return np.arange(len(keys)), columns
    data, ends = keys.data.tobytes(), keys.offsets.tolist()
    rows = [row_of(data[ends[row] : ends[row + 1]].decode(), key_type) for row in range(len(keys))]
    known = [row for row in rows if row is not None]
    places = np.flatnonzero([row is not None for row in rows])
    return places, [[row[at] for row in known] for at in range(len(kinds))]


def _in_bulk(keys: KeyBytes, kinds: Sequence[KeyType]) -> list[list[Any]] | None:
    """The values by column; None unless all keys are of the types."""
    texts = _texts(keys)
    if len(kinds) == 1:
        columns: list[list[Any]] = [texts.to_pylist()]
        return columns if _all_are(columns[0], kinds[0]) else None
    if not len(keys) or not pc.all(pc.match_substring_regex(texts, r"^\[.*\]$")).as_py():
        return None
    columns = [[] for _ in kinds]
    for first in range(0, len(keys), _BLOCK):
        rows = _parsed(texts[first : first + _BLOCK].to_pylist(), len(kinds))
        if rows is None:
            return None
        for at, values in enumerate(columns):
            values += [row[at] for row in rows]
    fit = all(
        _all_are([value for value in values if value is not None], kind)
        for values, kind in zip(columns, kinds, strict=True)
    )
    return columns if fit else None


def _parsed(texts: Sequence[str], columns: int) -> list[list[Any]] | None:
    """The rows of texts within brackets, parsed as one; None if one is not such a row."""
    # A line break is within no text of JSON: a bracket that is left open would put a list into a row.
    joined = ",\n".join(texts)
    try:
        rows = json.loads(f"[{joined}]")
    except (ValueError, RecursionError):
        return None
    alike = len(rows) == len(texts) and {*map(type, rows)} == {list} and {*map(len, rows)} == {columns}
    return rows if alike and "\\u" not in joined else None


def _all_are(values: Sequence[Any], key_type: KeyType) -> bool:
    """Whether all values are of a type of one column."""
    types = {*map(type, values)}
    if key_type in _LIMITS:
        limit = _LIMITS[key_type]
        return types <= {int} and (not values or (-limit <= min(values) and max(values) < limit))
    form = _form_of(key_type)
    if form is None or not types <= {str}:
        return types <= {str}
    fits = pc.match_substring_regex(pa.array(values, pa.large_string()), f"^({form.pattern})$")
    return bool(pc.all(fits, min_count=0).as_py()) and _have_values(values, key_type)


def _texts(keys: KeyBytes) -> pa.Array:
    return pa.LargeStringArray.from_buffers(len(keys), pa.py_buffer(keys.offsets), pa.py_buffer(keys.data))


def word_of(value: Any, key_type: KeyType) -> bytes:
    """One value as by `words_of`."""
    if isinstance(value, int):
        return value.to_bytes(_SIZES[key_type], "little", signed=True)
    if key_type in _SIZES:
        return _numbers(value, key_type).tobytes()
    if key_type.precision is not None and key_type.precision[0] <= 18:
        return _whole(value, key_type.precision[1]).to_bytes(8, "little", signed=True)
    return value.encode() if key_type is KeyType.STRING else words_of([value], key_type).data.tobytes()


def words_of(values: Sequence[Any], key_type: KeyType) -> KeyBytes:
    """Values of one column as bytes, numbers little-endian.

    Decimals are their digits as a whole number; those of more than 18 digits have the fewest bytes, big-endian.
    """
    if key_type.precision is not None:
        return _decimals(values, *key_type.precision)
    if key_type in _SIZES:
        return _words(_numbers(values, key_type))
    match key_type:
        case KeyType.BOOLEAN:
            return _words(np.array([value == "true" for value in values], "<i4"))
        case KeyType.BINARY:
            return _joined([bytes.fromhex(value) for value in values])
    return key_bytes(pa.array(values, pa.large_string()))


def _numbers(values: Any, key_type: KeyType) -> NDArray[np.integer[Any]]:
    """Integers, days or microseconds of one value or several."""
    return np.array(values, _UNITS.get(key_type, "i8")).astype(f"<i{_SIZES[key_type]}")


def narrowed(keys: KeyBytes, kind: str) -> KeyBytes:
    """Integers of 8 bytes little-endian as another type of numpy."""
    words = keys.data.view("<i8").astype(kind)
    return KeyBytes(read_only(words), keys.offsets // (8 // words.itemsize))


def _decimals(values: Sequence[str], precision: int, scale: int) -> KeyBytes:
    wholes = [_whole(value, scale) for value in values]
    if precision <= 18:
        return _words(np.array(wholes, "<i8"))
    # as Java's BigInteger.toByteArray
    return _joined(
        [each.to_bytes((each if each >= 0 else ~each).bit_length() // 8 + 1, "big", signed=True) for each in wholes]
    )


def _whole(value: str, scale: int) -> int:
    return int(_scaled(value, scale))


def _scaled(value: str, scale: int) -> Decimal:
    return _EXACT.scaleb(Decimal(value), scale)


def _words(numbers: Any) -> KeyBytes:
    data = np.frombuffer(np.ascontiguousarray(numbers).tobytes(), np.uint8)
    return KeyBytes(data, np.arange(len(numbers) + 1, dtype=np.int64) * numbers.dtype.itemsize)


def _joined(parts: Sequence[bytes]) -> KeyBytes:
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return KeyBytes(np.frombuffer(b"".join(parts), np.uint8), ends)
