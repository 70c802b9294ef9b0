"""Formatting cells for people and for programs."""

from datetime import UTC, datetime, timedelta
from math import isfinite
from unicodedata import category

from adapt.core.phrases import percent
from adapt.core.table import Cell, Column, Kind

MISSING = "–"
"""The text of an undefined value."""

EMPTY = "(empty)"
"""The text of the empty key."""

_THIN = "\u202f"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human(cell: Cell, column: Column) -> str:
    """The cell for people: grouped counts, percentages, KiB, ISO times.

    An integer in a text column is a name (a key), so it is not grouped. Non-finite numbers are undefined.
    """
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return MISSING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return visible(cell) or (EMPTY if column.name.endswith("key") else "")
    try:
        return _human_number(cell, column.kind)
    except OverflowError:  # an integer too large for a float
        return str(cell)


def shown(cell: Cell, column: Column, limit: int) -> str:
    """The cell for people, cut at `limit` characters."""
    return human(elided(cell, limit) if isinstance(cell, str) else cell, column)


def plain(cell: Cell) -> Cell:
    """The cell for programs: itself, or null for a non-finite number."""
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def is_numeric(kind: Kind) -> bool:
    """Whether cells of this kind are numbers, aligned right."""
    return kind not in (Kind.TEXT, Kind.TIME)


def number(value: float) -> str:
    """Four significant digits, or all digits of the integer part."""
    return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e15 else f"{value:.4g}"


def size(value: float) -> str:
    """Bytes in the largest binary unit below the value."""
    scaled, unit = float(value), 0
    while abs(scaled) >= 1024 and unit + 1 < len(_BINARY_UNITS):
        scaled, unit = scaled / 1024, unit + 1
    digits = f"{scaled:.0f}" if unit == 0 or abs(scaled) >= 100 else f"{scaled:.1f}"
    return f"{digits}{_THIN}{_BINARY_UNITS[unit]}"


def duration(value: float) -> str:
    """Seconds in the two largest units, such as `3 h 20 min`."""
    length = abs(value)
    if length < 59.95:
        scale, unit = (
            (1.0, "s") if length >= 0.9995 or length == 0 else (1e3, "ms") if length >= 0.9995e-3 else (1e6, "µs")
        )
        return f"{value * scale:.3g}{_THIN}{unit}"
    whole = round(length)
    for unit, of, part, of_part in (("min", 60, "s", 1), ("h", 3600, "min", 60), ("d", 86400, "h", 3600)):
        if whole < of * (60 if unit == "min" else 24) or unit == "d":
            rest = whole % of // of_part
            text = f"{whole // of:,}{_THIN}{unit}" + (f" {rest}{_THIN}{part}" if rest else "")
            return f"-{text}" if value < 0 else text
    raise AssertionError("days are the last unit")


def instant(microseconds: float) -> str:
    """Microseconds since 1970 as an ISO time in UTC."""
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{microseconds}{_THIN}µs"


def visible(text: str) -> str:
    r"""The text with invisible and control characters as escapes: `\x1b`, `\u202e`, `\ud800`.

    Control and format characters, lone surrogates, line separators and unassigned code points are escaped; letters
    of every script, spaces and emoji stay. The result is always encodable and on one line.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def elided(text: str, limit: int) -> str:
    """The text, cut at `limit` characters, with its length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def _human_number(cell: int | float, kind: Kind) -> str:
    match kind:
        case Kind.TEXT:
            return str(cell) if isinstance(cell, int) else f"{cell:.6g}"
        case Kind.COUNT:
            return f"{cell:,}" if isinstance(cell, int) or not cell.is_integer() else f"{cell:,.0f}"
        case Kind.NUMBER:
            return number(cell)
        case Kind.RATIO:
            return f"{cell:,.3f}"
        case Kind.SHARE:
            return percent(cell)
        case Kind.BYTES:
            return size(cell)
        case Kind.SECONDS:
            return duration(cell)
        case Kind.TIME:
            return instant(cell)


def _visible_character(character: str) -> str:
    if character.isprintable() or category(character) == "Zs":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
