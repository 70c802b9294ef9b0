"""Values of typed keys: dates, times, decimals and several columns as text."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from adapt.core.keys.columns import KeyBytes
from adapt.core.stream import KeyType

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
_LIMITS = {KeyType.INT8: 1 << 7, KeyType.INT16: 1 << 15, KeyType.INT32: 1 << 31, KeyType.INT64: 1 << 63}


def is_key_of(value: Any, key_type: KeyType) -> bool:
    """Whether a value is of a type of one column."""
    if key_type in _LIMITS:
        limit = _LIMITS[key_type]
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if not isinstance(value, str):
        return False
    form = _DECIMAL if key_type.precision else _FORMS.get(key_type)
    return form is None or re.fullmatch(form, value) is not None


def row_of(text: str, key_type: KeyType) -> tuple[Any, ...] | None:
    """Values of one key; None if the text is no such key."""
    if not key_type.columns:
        return (text,) if is_key_of(text, key_type) else None
    try:
        row = json.loads(text)
    except ValueError:
        return None
    if not isinstance(row, list) or len(row) != len(key_type.columns):
        return None
    fits = all(each is None or is_key_of(each, kind) for each, kind in zip(row, key_type.columns, strict=True))
    return tuple(row) if fits else None


def rows_of(keys: KeyBytes, key_type: KeyType) -> list[tuple[Any, ...] | None]:
    """The same for keys without nulls."""
    data, ends = keys.data.tobytes(), keys.offsets.tolist()
    return [row_of(data[ends[row] : ends[row + 1]].decode(), key_type) for row in range(len(keys))]


def words_of(values: Sequence[Any], key_type: KeyType) -> KeyBytes:
    """Values of one column as bytes, numbers little-endian.

    Decimals are their digits as a whole number; those of more than 18 digits have the fewest bytes, big-endian.
    """
    if key_type.precision is not None:
        return _decimals(values, *key_type.precision)
    match key_type:
        case KeyType.INT8 | KeyType.INT16 | KeyType.INT32:
            return _words(np.array(values, "<i4"))
        case KeyType.INT64:
            return _words(np.array(values, "<i8"))
        case KeyType.BOOLEAN:
            return _words(np.array([value == "true" for value in values], "<i4"))
        case KeyType.DATE:
            return _words(np.array(values, "datetime64[D]").astype("<i4"))
        case KeyType.TIMESTAMP | KeyType.TIMESTAMP_NTZ:
            return _words(np.array(values, "datetime64[us]").astype("<i8"))
        case KeyType.BINARY:
            return _joined([bytes.fromhex(value) for value in values])
    return _joined([value.encode() for value in values])


def narrowed(keys: KeyBytes, kind: str) -> KeyBytes:
    """Integers of 8 bytes little-endian as another type of numpy."""
    words = _words(keys.data.view("<i8").astype(kind))
    return KeyBytes(words.data, keys.offsets // 8 * np.dtype(kind).itemsize)


def _decimals(values: Sequence[str], precision: int, scale: int) -> KeyBytes:
    from decimal import Context, Decimal

    exact = Context(prec=80)
    wholes = [int(exact.scaleb(Decimal(value), scale)) for value in values]
    if precision <= 18:
        return _words(np.array(wholes, "<i8"))
    # as Java's BigInteger.toByteArray
    return _joined(
        [each.to_bytes((each if each >= 0 else ~each).bit_length() // 8 + 1, "big", signed=True) for each in wholes]
    )


def _words(numbers: Any) -> KeyBytes:
    data = np.frombuffer(np.ascontiguousarray(numbers).tobytes(), np.uint8)
    return KeyBytes(data, np.arange(len(numbers) + 1, dtype=np.int64) * numbers.dtype.itemsize)


def _joined(parts: Sequence[bytes]) -> KeyBytes:
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return KeyBytes(np.frombuffer(b"".join(parts), np.uint8), ends)
