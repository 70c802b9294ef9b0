"""Durations, sizes and bandwidths with units: 45us, 512MB, 250Mbps."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from adapt.core.errors import UsageError

_AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([a-z]*)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of amount and its units."""

    name: str  # what an amount of it is called, with its article
    units: Mapping[str, Fraction]  # value of each unit by its lower-case name
    written: str  # the units as users write them
    asked: tuple[str, str]  # two of them, suggested for a number without a unit

    def read(self, text: str) -> Fraction:
        """Number times unit, exactly; 0 needs no unit."""
        found = _AMOUNT.fullmatch(text.strip())
        if found is None:
            raise UsageError(f"{text!r} is not {self.name}: give a number and a unit ({self.written})")
        number, unit = Fraction(found[1]), found[2].lower()
        if number and not unit:
            raise UsageError(f"{found[1]} needs a unit: {' or '.join(found[1] + each for each in self.asked)}?")
        if unit and unit not in self.units:
            raise UsageError(f"{text!r} has an unknown unit {found[2]!r}; available: {self.written}")
        return number * self.units.get(unit, 0)


def _powers(step: int, *names: str) -> dict[str, Fraction]:
    return {name: Fraction(step**power) for power, name in enumerate(names)}


_UP_TO_SECONDS = {name: size / 10**9 for name, size in _powers(1000, "ns", "us", "ms", "s").items()}
_FROM_MINUTES = {"m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}

DURATION = Quantity(
    "a duration",
    _UP_TO_SECONDS | {name: Fraction(seconds) for name, seconds in _FROM_MINUTES.items()},
    "ns, us, ms, s, m or min, h, d, w",
    ("s", "h"),
)
"""In seconds."""

COST = replace(DURATION, asked=("us", "ms"))
"""A cost or service time, in seconds."""

SIZE = Quantity(
    "a size",
    _powers(1000, "b", "kb", "mb", "gb") | _powers(1024, "b", "kib", "mib", "gib"),
    "B, kB, MB, GB, KiB, MiB, GiB",
    ("B", "MB"),
)
"""In bytes."""

BANDWIDTH = Quantity(
    "a bandwidth", _powers(1000, "bps", "kbps", "mbps", "gbps"), "bps, kbps, Mbps, Gbps", ("Mbps", "Gbps")
)
"""In bits per second."""


def seconds_of(text: str) -> float:
    """A duration in seconds: 45us, 0.5ms, 60s; 0 needs no unit."""
    return float(DURATION.read(text))


def micros_of(text: str) -> float:
    """A cost in microseconds: 100us, 2.5ms; 0 needs no unit."""
    return float(COST.read(text) * 10**6)


def unit_us(text: str) -> Fraction:
    """Microseconds in a unit (ms) or a multiple of one (2.5ms)."""
    seconds = COST.units.get(text.strip().lower()) or COST.read(text)
    if not seconds:
        raise UsageError(f"must be above 0 (got {text})")
    return seconds * 10**6


def bytes_of(text: str) -> float:
    """A size in bytes: 512MB, 1GiB; 0 needs no unit."""
    return float(SIZE.read(text))


def percent_of(text: str) -> float:
    """A percentage as a share: 5% is 0.05."""
    found = _AMOUNT.fullmatch(text.strip().removesuffix("%"))
    if found is None or found[2] or not text.strip().endswith("%"):
        raise UsageError(f"must be a percentage such as 5% (got {text!r})")
    return float(Fraction(found[1]) / 100)


def bits_of(text: str) -> float:
    """A bandwidth in bits per second: 250Mbps."""
    return float(BANDWIDTH.read(text))
