"""Durations in whole microseconds: 500ms, 30s, 15m or 15min, 1h, 7d, 2w."""

from adapt.core.errors import UsageError
from adapt.core.units.amounts import DURATION

_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
"""Microseconds in one of each unit that `duration_text` writes."""

_ROUND_S = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200)
_ROUND_US = tuple([round(step * 1e6) for step in _ROUND_S] + [_US["d"] << power for power in range(24)])

_LONGEST_US = 10_000 * 366 * _US["d"]
"""No trace is longer: its times lie in the years 1 to 9999."""


def duration_us(text: str) -> int:
    """A duration in whole microseconds; 0 needs no unit."""
    length = DURATION.read(text) * 10**6
    if length.denominator != 1:
        raise UsageError(f"{text!r} must be a whole number of microseconds, the resolution of a trace")
    if length > _LONGEST_US:
        raise UsageError(f"{text!r} is longer than any trace, whose times lie in the years 1 to 9999")
    return int(length)


def duration_text(us: int) -> str:
    """A duration as text, in the largest unit that divides it.

    `duration_us` reads it back.
    """
    if us % _US["ms"]:
        return f"{us // 1000}.{us % 1000:03d}".rstrip("0") + "ms"
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if us % _US[unit] == 0) if us else "h"
    return f"{us // _US[unit]}{unit}"


def round_us(least_us: float) -> int:
    """The shortest round duration of at least this length.

    Round durations are 1 ms, 5 s, 10 min, 6 h, 1 d, 2 d and so on.
    """
    return next(length for length in _ROUND_US if length >= least_us)
