"""Amounts in limits: a number with a unit of the metric."""

import re
from fractions import Fraction

from adapt.core.check.metrics import Metric
from adapt.core.errors import UsageError
from adapt.core.table import Kind
from adapt.core.units.amounts import bytes_of, seconds_of

_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*(.*)", re.ASCII | re.DOTALL)


def amount_for(metric: Metric, text: str) -> float:
    """Amount of a limit, in seconds, bytes or shares of 1."""
    number, unit = _parts(text)
    match metric.kind:
        case Kind.SECONDS:
            return seconds_of(text if unit else f"{text}{metric.unit}")
        case Kind.BYTES:
            return bytes_of(text if unit else f"{text}B")
        case Kind.SHARE:
            return _share(metric, text, number, unit)
    if unit and unit != metric.unit:
        takes = f"a bare number or {metric.unit}" if metric.unit else "a bare number"
        raise UsageError(f"{metric.name} takes {takes} (got the unit {unit!r})")
    return float(number)


def percent_of(text: str) -> float:
    """A percentage as a share: 5% is 0.05."""
    number, unit = _parts(text)
    if unit != "%":
        raise UsageError(f"must be a percentage such as 5% (got {text!r})")
    return float(number / 100)


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
