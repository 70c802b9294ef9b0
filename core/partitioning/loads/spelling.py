"""Loads as typed: C, L, Q, n^1.5, nlogn, min(n,100), column:bytes, sums."""

import math
import re

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.partitioning.loads.load import CountFunction, Growth, Load, Measured, ResourceFunction, Sum

_NUMBER = r"\d+(?:\.\d+)?"
_TERM = re.compile(
    rf"(?:(?P<factor>{_NUMBER})\s*\*\s*)?(?:column:(?P<source>[^+*,]+)|(?P<letter>[CLQ])"
    rf"|(?P<min>min\()?(?:n(?:\^(?P<power>{_NUMBER})|(?P<log>logn))?)(?(min),\s*(?P<most>{_NUMBER})\)))"
    rf"|(?P<constant>{_NUMBER})"
)

MOST_POWER = 4.0
"""Largest power of a count: higher ones overflow."""


def load_named(text: str) -> Load:
    """A load as typed, e.g. "min(n,100) + 3*nlogn"."""
    amounts: dict[CountFunction | Measured, float] = {}
    for part in text.split("+"):
        factor, term = _term(part.strip(), text)
        amounts[term] = amounts.get(term, 0.0) + factor
    terms = tuple((factor, term) for term, factor in amounts.items())
    is_plain = len(terms) == 1 and (terms[0][0] == 1 or terms[0][1] is ResourceFunction.CONSTANT)
    return terms[0][1] if is_plain else Sum(terms)


def load_text(load: Load) -> str:
    """The text that `load_named` reads."""
    match load:
        case Sum(terms):
            return "+".join(_term_text(factor, term) for factor, term in terms)
        case Measured(source):
            return f"column:{source}"
        case Growth(power, logarithm, most):
            grown = "nlogn" if logarithm else "n" if power == 1 else f"n^{_number(power)}"
            return grown if most == math.inf else f"min({grown},{_number(most)})"
    return load.value


def _term_text(factor: float, term: CountFunction | Measured) -> str:
    if term is ResourceFunction.CONSTANT:
        return _number(factor)
    as_power = {ResourceFunction.LINEAR: "n", ResourceFunction.QUADRATIC: "n^2"}
    named = as_power[term] if isinstance(term, ResourceFunction) else load_text(term)
    return named if factor == 1 else f"{_number(factor)}*{named}"


def _term(part: str, text: str) -> tuple[float, CountFunction | Measured]:
    """The factor and the load of a term."""
    found = _TERM.fullmatch(part)
    if found is None:
        raise UsageError(f"{_LOADS} (got {text!r})")
    if found["constant"]:
        return _above_0(found["constant"], text), ResourceFunction.CONSTANT
    factor = _above_0(found["factor"] or "1", text)
    if found["source"]:
        return factor, Measured(found["source"])
    if found["letter"]:
        return factor, ResourceFunction(found["letter"])
    power, most = _above_0(found["power"] or "1", text), _above_0(found["most"] or "inf", text)
    if power > MOST_POWER:
        raise UsageError(f"{_LOADS}; a power is at most {MOST_POWER:g} (got {text!r})")
    plain = {1.0: ResourceFunction.LINEAR, 2.0: ResourceFunction.QUADRATIC}
    if found["log"] is None and most == math.inf and power in plain:
        return factor, plain[power]
    return factor, Growth(power, found["log"] is not None, most)


def _above_0(number: str, text: str) -> float:
    value = float(number)
    if value <= 0:
        raise UsageError(f"{_LOADS}; numbers are above 0 (got {text!r})")
    return value


def _number(value: float) -> str:
    """All digits of a number, without an exponent."""
    return np.format_float_positional(value, trim="-")


_LOADS = "a load is C, L, Q, n^1.5, nlogn, min(n,100) or column:NAME, or a sum of such terms, like n+3*nlogn"
