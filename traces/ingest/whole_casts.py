"""Casts to whole numbers, with NaN as null.

Spark's `bigint(...)` makes 0 of NaN, and the largest number of infinity, so that such rows would share a key.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from adapt.traces.spark.lazy import DataFrame, F

_TYPES = "bigint|long|int|integer|smallint|short|tinyint|byte"
_CALL = re.compile(r"\b(?:(bigint|int|smallint|tinyint)|(floor|ceil|ceiling)|(?:try_)?cast)\s*\(", re.IGNORECASE)
_CAST = re.compile(rf"(.+)\s+as\s+(?:{_TYPES})\s*", re.IGNORECASE | re.DOTALL)
_COLONS = re.compile(rf"([\w.]+|`[^`]+`)\s*::\s*(?:{_TYPES})\b", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_NAME = re.compile(r"\s*([\w.]+|`[^`]+`)\s*")
_FRACTIONAL = ("double", "float", "decimal", "string")


@dataclass(frozen=True, slots=True)
class WholeCasts:
    """An expression that casts NaN to null."""

    text: str  # the expression
    refused: tuple[str, ...] = ()  # conditions of a column with a fraction or too large a number


def with_whole_casts(source: DataFrame, text: str) -> WholeCasts:
    """An expression that casts NaN to null.

    Computed values may have fractions, which are meant to be cut off; columns may not.
    """
    parts, odd, done = [], list[str](), 0
    for start, end, call, argument, cut in _casts(text):
        if start < done:
            continue
        inner = with_whole_casts(source, argument)
        odd += inner.refused
        made = call.replace(argument, inner.text, 1)
        kind = _kind(source, inner.text)
        if kind.startswith(_FRACTIONAL):
            if kind in ("double", "float"):
                made = f"if(isnan({inner.text}), null, {made})"
            if not cut and _NAME.fullmatch(argument):
                number = f"double({argument})"
                changed = f"{number} != double({made}) or abs({number}) >= 9.2233720368547758E18"
                odd.append(f"(not isnan({number}) and ({changed}))")
        parts += [text[done:start], made]
        done = end
    return WholeCasts("".join([*parts, text[done:]]), tuple(odd))


def _casts(text: str) -> Iterator[tuple[int, int, str, str, bool]]:
    """Casts from left to right, with their place, text and argument, and whether they cut fractions by intent."""
    plain = _QUOTED.sub(lambda quoted: "'" + "." * (len(quoted[0]) - 2) + "'", text)
    found = [(match.start(), match.end(), match[0], match[1], False) for match in _COLONS.finditer(plain)]
    for match in _CALL.finditer(plain):
        end = _closing(plain, match.end())
        argument = text[match.end() : end - 1]
        if match[1] is None and match[2] is None:
            cast = _CAST.fullmatch(argument)
            if cast is None:
                continue
            argument = cast[1]
        found.append((match.start(), end, text[match.start() : end], argument, match[2] is not None))
    yield from sorted(found)


def _closing(text: str, at: int) -> int:
    """The place after the parenthesis that closes one before this place; the end if none does."""
    depth = 1
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return place + 1
    return len(text)


def _kind(source: DataFrame, text: str) -> str:
    """Short type of an expression in Spark; empty if Spark cannot read it."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        return str(source.select(F.expr(text)).schema[0].dataType.simpleString())
    except (AnalysisException, ParseException):
        return ""
