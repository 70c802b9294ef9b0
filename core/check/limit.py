"""Limits: expressions such as `imbalance<=1.2`, amounts with units, and files."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from adapt.core.check.metrics import metric_named
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.metrics import Better, Metric
from adapt.core.table import Kind
from adapt.core.units.amounts import bytes_of, percent_of, seconds_of

_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*(.*)", re.ASCII | re.DOTALL)


def amount_for(metric: Metric, text: str) -> float:
    """Amount of a limit, in seconds, bytes or shares of 1."""
    number, unit = _parts(text)
    match metric.column.kind:
        case Kind.SECONDS:
            if not unit and not metric.bare:
                raise UsageError(
                    f"{metric.name} is a duration: write its unit, as in 500ms or 2s (got {text.strip()!r})"
                )
            return seconds_of(text if unit else f"{text}s")
        case Kind.BYTES:
            return bytes_of(text if unit else f"{text}B")
        case Kind.SHARE:
            return _share(metric, text, number, unit)
    if unit and unit != metric.column.unit:
        takes = f"a bare number or {metric.column.unit}" if metric.column.unit else "a bare number"
        raise UsageError(f"{metric.name} takes {takes} (got the unit {unit!r})")
    return float(number)


def _parts(text: str) -> tuple[Fraction, str]:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"the amount must be a number of at least 0, such as 1.2 (got {text.strip()!r})")
    return Fraction(found[1]), found[2]


def _share(metric: Metric, text: str, number: Fraction, unit: str) -> float:
    if unit not in ("", "%"):
        raise UsageError(f"{metric.name} is a share, such as 20% or 0.2 (got the unit {unit!r})")
    share = number / 100 if unit else number
    if share > 1:
        hint = "" if unit else f"; did you mean {text.strip()}%?"
        raise UsageError(f"{metric.name} is a share from 0 to 1, or 0% to 100% (got {text.strip()}{hint})")
    return float(share)


class Comparison(StrEnum):
    """Comparison of a value with an amount."""

    AT_MOST = "<="
    BELOW = "<"
    AT_LEAST = ">="
    ABOVE = ">"
    EQUAL = "=="


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects rows with, or without, a label value."""

    label: str
    value: str
    wanted: bool = True

    def takes(self, where: Mapping[str, str]) -> bool:
        """Whether it selects the row with these labels."""
        return (where.get(self.label) == self.value) is self.wanted

    def __str__(self) -> str:
        """The selector as written in a limit."""
        plain = self.value and not _NEEDS_QUOTES.search(self.value)
        value = self.value if plain else '"' + self.value.replace('"', '""') + '"'
        return f"{self.label}{'=' if self.wanted else '!='}{value}"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on a metric."""

    text: str  # the text given by the user
    metric: Metric
    selectors: tuple[Selector, ...]  # selected rows; empty for all rows
    comparison: Comparison | None  # comparison with `amount`; None for a limit against a baseline
    # in the unit of the metric's kind. Against a baseline: the tolerated relative change for the worse, or None for
    # the default
    amount: float | None

    @property
    def bound(self) -> str:
        """The text after the metric and its selectors."""
        return self.text[_end_of_head(self.text) :].strip()


def parse_limit(text: str) -> Limit:
    """Parse a limit: METRIC[LABEL=VALUE,...], then a comparison or `worse-by P%`.

    A metric alone is checked against the baseline, too.
    """
    try:
        return _parsed(text)
    except UsageError as error:
        raise UsageError(f"limit {text!r}: {error}") from None


def _parsed(text: str) -> Limit:
    name = _NAME.match(text)
    if name is None:
        raise UsageError("it must start with a metric, as in imbalance<=1.2")
    metric = metric_named(name[1])
    selectors, at = _selectors(text, name.end())
    rest = text[at:].strip()
    if not rest:
        return Limit(text, _with_a_side(metric), selectors, None, None)
    if worse := _WORSE.fullmatch(rest):
        return Limit(text, _with_a_side(metric), selectors, None, percent_of(worse[1]))
    sign = _SIGN.match(rest)
    if sign is None:
        raise UsageError(f"the metric must be followed by {_SIGNS} and an amount, or worse-by 5% (got {rest!r})")
    if sign[0] not in set(Comparison):
        raise UsageError(f"the comparison must be one of {_SIGNS} (got {sign[0]!r})")
    return Limit(text, metric, selectors, Comparison(sign[0]), amount_for(metric, rest[sign.end() :]))


def _with_a_side(metric: Metric) -> Metric:
    if metric.better is Better.NEITHER:
        raise UsageError(
            f"{metric.name} has no better side, so it cannot be checked against a baseline; compare it with an amount,"
            f" such as {metric.name}>=1"
        )
    return metric


def _selectors(text: str, at: int) -> tuple[tuple[Selector, ...], int]:
    """The selectors in brackets, if any, and the position after them."""
    if not text.startswith("[", at):
        return (), at
    found = []
    at += 1
    while True:
        one = _SELECTOR.match(text, at)
        if one is None:
            raise UsageError(f"brackets must hold LABEL=VALUE, as in imbalance[scheme=hybrid]<=1.2 (got {text[at:]!r})")
        value = one["quoted"].replace('""', '"') if one["quoted"] is not None else one["plain"].strip()
        found.append(Selector(one["label"], value, one["sign"] == "="))
        at = one.end()
        if one["end"] == "]":
            return tuple(found), at


def _end_of_head(text: str) -> int:
    name = _NAME.match(text)
    return _selectors(text, name.end())[1] if name else 0


def refuse_unknown(selectors: Sequence[Selector], rows: Sequence[Mapping[str, str]]) -> None:
    """Reject selectors whose label, or wanted value, no row has.

    An unwanted value that no row has is harmless: it excludes nothing.
    """
    for each in selectors:
        labels = sorted({label for row in rows for label in row})
        if each.label not in labels:
            raise UsageError(f"label {each.label!r} does not exist{did_you_mean(each.label, labels)}")
        values = {row[each.label] for row in rows if each.label in row}
        if each.wanted and each.value not in values:
            raise UsageError(f"{each.label} {each.value!r} does not exist{did_you_mean(each.value, values)}")


_SIGNS = ", ".join(Comparison)
_NAME = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*(?:\(1\+m\))?)\s*", re.ASCII)
_SIGN = re.compile(r"[<>=!]+")
_WORSE = re.compile(r"worse-by\s+(.+)", re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[,\]"=!\s]')
_SELECTOR = re.compile(
    r'\s*(?P<label>[A-Za-z_][A-Za-z0-9_]*)\s*(?P<sign>!?=)\s*(?:"(?P<quoted>(?:[^"]|"")*)"\s*|(?P<plain>[^,\]"=!]*[^,\]"=!\s]\s*))(?P<end>[,\]])',
    re.ASCII,
)


_KNOWN = ("limits",)


def read_limits(text: str) -> list[Limit]:
    """Parse the text of a limits file."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"invalid TOML: {error}") from None
    for name in document:
        if name not in _KNOWN:
            raise BadInput(f"field {name!r} does not exist{did_you_mean(name, _KNOWN)}")
    texts = document.get("limits")
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise BadInput('limits must be a list of strings, such as ["imbalance <= 1.2", "latency_p99 < 500ms"]')
    return [parse_limit(each) for each in texts]
