"""Amounts as a user writes them: 45us, 512MB, 250Mbps."""

import re
from collections.abc import Mapping
from fractions import Fraction

from adapt.core.errors import UsageError

_NANO = Fraction(1, 10**9)
_SECONDS = {
    "ns": _NANO,
    "us": 1000 * _NANO,
    "ms": 10**6 * _NANO,
    "s": Fraction(1),
    "m": Fraction(60),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86_400),
}
_BYTES = {name: Fraction(size) for name, size in (("b", 1), ("kb", 10**3), ("mb", 10**6), ("gb", 10**9))} | {
    name: Fraction(size) for name, size in (("kib", 2**10), ("mib", 2**20), ("gib", 2**30))
}
_BITS = {name: Fraction(rate) for name, rate in (("bps", 1), ("kbps", 10**3), ("mbps", 10**6), ("gbps", 10**9))}

_AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([a-z]*)", re.ASCII | re.IGNORECASE)


def seconds_of(text: str) -> float:
    """A length of simulated time in seconds: 45us, 0.5ms, 60s; 0 needs no unit.

    Raises:
        UsageError: it is none.
    """
    return float(amount_of(text, _SECONDS, "length of time", "ns, us, ms, s, m or min, h, d", "45us"))


def bytes_of(text: str) -> float:
    """A size in bytes: 512MB, 1GiB.

    Raises:
        UsageError: it is none.
    """
    return float(amount_of(text, _BYTES, "size", "B, kB, MB, GB, KiB, MiB, GiB", "512MB"))


def bits_of(text: str) -> float:
    """A bandwidth in bits a second: 250Mbps.

    Raises:
        UsageError: it is none.
    """
    return float(amount_of(text, _BITS, "bandwidth", "bps, kbps, Mbps, Gbps", "250Mbps"))


def amount_of(text: str, units: Mapping[str, Fraction], what: str, names: str, example: str) -> Fraction:
    """A number times its unit, exactly; 0 needs no unit.

    Args:
        units: The value of each unit, named in lower case.
        what: What it should be, for the refusal.
        names: The units as users write them, for the refusal.
        example: One that would do.

    Raises:
        UsageError: it is none.
    """
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no {what}: a number and a unit ({names}), such as {example}")
    number, unit = Fraction(found[1]), found[2].lower()
    if not unit and number:
        raise UsageError(f"{text!r} has no unit: one of {names}, as in {example}")
    if unit and unit not in units:
        raise UsageError(f"{text!r} has an unknown unit {found[2]!r}: there are {names}")
    return number * units.get(unit, 0)
