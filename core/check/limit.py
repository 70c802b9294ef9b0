"""Limits as a user writes them: `imbalance<=1.2`, `p99_ms[case=load]<500`, `imbalance worse-by 5%`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from adapt.core.check.amount import amount_for, percent_of
from adapt.core.check.metrics import Better, Metric, metric_named
from adapt.core.errors import UsageError, did_you_mean


class Comparison(StrEnum):
    """How a value is held against an amount."""

    AT_MOST = "<="
    BELOW = "<"
    AT_LEAST = ">="
    ABOVE = ">"
    EQUAL = "=="


@dataclass(frozen=True, slots=True)
class Selector:
    """Which rows of an artefact are meant: those with, or without, a value under a label."""

    label: str
    value: str
    wanted: bool = True

    def takes(self, where: Mapping[str, str]) -> bool:
        """Whether the row with these labels is meant."""
        return (where.get(self.label) == self.value) is self.wanted

    def __str__(self) -> str:
        """As it is written."""
        plain = self.value and not _NEEDS_QUOTES.search(self.value)
        value = self.value if plain else '"' + self.value.replace('"', '""') + '"'
        return f"{self.label}{'=' if self.wanted else '!='}{value}"


@dataclass(frozen=True, slots=True)
class Limit:
    """One expression.

    Attributes:
        text: As the user wrote it.
        selectors: Which rows; all if there are none.
        comparison: How it is held against `amount`; None, against a baseline.
        amount: In the unit of the metric's kind; of a limit against a baseline, how much worse than it the metric may
            be as a share of it, or None for what is usual.
    """

    text: str
    metric: Metric
    selectors: tuple[Selector, ...]
    comparison: Comparison | None
    amount: float | None

    @property
    def bound(self) -> str:
        """What was asked for, without the metric and its rows."""
        return self.text[_end_of_head(self.text) :].strip()


def parse_limit(text: str) -> Limit:
    """The limit of a text: METRIC, perhaps [LABEL=VALUE,...], a comparison with an amount, or `worse-by` a percentage.

    A metric alone is held against the baseline, too.

    Raises:
        UsageError: it is none; the sentence repeats it.
    """
    try:
        return _parsed(text)
    except UsageError as error:
        raise UsageError(f"limit {text!r}: {error}") from None


def _parsed(text: str) -> Limit:
    name = _NAME.match(text)
    if name is None:
        raise UsageError("it does not begin with a metric, as imbalance<=1.2 does")
    metric = metric_named(name[1])
    selectors, at = _selectors(text, name.end())
    rest = text[at:].strip()
    if not rest:
        return Limit(text, _with_a_side(metric), selectors, None, None)
    if worse := _WORSE.fullmatch(rest):
        return Limit(text, _with_a_side(metric), selectors, None, percent_of(worse[1]))
    sign = _SIGN.match(rest)
    if sign is None:
        raise UsageError(f"after the metric stands {rest!r} instead of {_SIGNS} and an amount, or worse-by 5%")
    if sign[0] not in set(Comparison):
        raise UsageError(f"{sign[0]!r} is no comparison; there are {_SIGNS}")
    return Limit(text, metric, selectors, Comparison(sign[0]), amount_for(metric, rest[sign.end() :]))


def _with_a_side(metric: Metric) -> Metric:
    if metric.better is Better.NEITHER:
        raise UsageError(
            f"{metric.name} is better neither low nor high, so it cannot be held against a baseline; compare it with an"
            f" amount, e.g. {metric.name}>=1"
        )
    return metric


def _selectors(text: str, at: int) -> tuple[tuple[Selector, ...], int]:
    """What stands in brackets, if anything does, and where it ends."""
    if not text.startswith("[", at):
        return (), at
    found = []
    at += 1
    while True:
        one = _SELECTOR.match(text, at)
        if one is None:
            raise UsageError(f"in its brackets {text[at:]!r} is not LABEL=VALUE, as in imbalance[scheme=hybrid]<=1.2")
        value = one["quoted"].replace('""', '"') if one["quoted"] is not None else one["plain"].strip()
        found.append(Selector(one["label"], value, one["sign"] == "="))
        at = one.end()
        if one["end"] == "]":
            return tuple(found), at


def _end_of_head(text: str) -> int:
    name = _NAME.match(text)
    return _selectors(text, name.end())[1] if name else 0


def refuse_unknown(selectors: Sequence[Selector], rows: Sequence[Mapping[str, str]]) -> None:
    """Refuse selectors of labels, or of wanted values, that none of these rows has.

    An unwanted value that is nowhere is harmless: it leaves more rows to be held against the limit, not fewer.

    Raises:
        UsageError: there is one.
    """
    for each in selectors:
        labels = sorted({label for row in rows for label in row})
        if each.label not in labels:
            raise UsageError(f"there is no label {each.label!r}{did_you_mean(each.label, labels)}")
        values = {row[each.label] for row in rows if each.label in row}
        if each.wanted and each.value not in values:
            raise UsageError(f"there is no {each.label} {each.value!r}{did_you_mean(each.value, values)}")


_SIGNS = ", ".join(Comparison)
_NAME = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*(?:\(1\+m\))?)\s*", re.ASCII)
_SIGN = re.compile(r"[<>=!]+")
_WORSE = re.compile(r"worse-by\s+(.+)", re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[,\]"=!\s]')
_SELECTOR = re.compile(
    r'\s*(?P<label>[A-Za-z_][A-Za-z0-9_]*)\s*(?P<sign>!?=)\s*(?:"(?P<quoted>(?:[^"]|"")*)"\s*|(?P<plain>[^,\]"=!]*[^,\]"=!\s]\s*))(?P<end>[,\]])',
    re.ASCII,
)
