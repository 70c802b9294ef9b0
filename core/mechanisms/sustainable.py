"""Sustainable throughput of a scenario, by bisection over the speed-up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapt.core.stage.engine.series import Interval

GROWTH = 0.005
"""How much longer rows may wait in the second half of a stream, over its length."""

SHED = 0.01
"""The highest drop rate at a sustained rate."""

PRECISE = 0.01
"""Relative precision of the rate found."""

_STEP = 1.5
_WIDEST = 64.0


@dataclass(frozen=True, slots=True)
class Sustained:
    """The sustainable speed-up of a scenario."""

    # the highest sustained speed-up, up to about 64 times the first one tried; None if not even a 64th of that is
    # sustained
    speedup: float | None
    probes: int  # number of speed-ups tried


def is_sustained(intervals: Sequence[Interval], last_s: float) -> bool:
    """Whether lag stays bounded.

    Rows must wait no longer in the second half of the input than in the first.

    The tolerance is 0.5% of the input's length. If a steady stream is too fast by a fraction e, its lag grows by e per
    second, so the rate found is at most 1% too high. A mechanism that needs time to act may fall behind at
    first, but not forever. A scenario that sheds sustains a rate if it drops at most 1% of the rows.

    Args:
        intervals: Measurements of the stage at least until the last row arrived.
        last_s: When the last row arrived.
    """
    due = [one for one in intervals if one.start_s < last_s]
    first = [_longest_wait_s(one) for one in due if one.end_s <= last_s / 2]
    second = [_longest_wait_s(one) for one in due if one.end_s > last_s / 2]
    shed = sum(one.shed for one in due)
    done = sum(one.processed for one in due)
    grows = max(second, default=0.0) - max(first, default=0.0) > GROWTH * last_s
    return not grows and shed <= SHED * (shed + done)


def _longest_wait_s(one: Interval) -> float:
    """The longest latency of a row, or wait before a worker took it, if longer."""
    return max(one.total.max_s, one.waited_s)


def largest_sustained(sustains: Callable[[float], bool], start: float) -> Sustained:
    """Find the highest sustained speed-up, within 1%.

    If a speed-up is sustained, lower ones are assumed to be sustained too.

    Args:
        sustains: Whether a speed-up is sustained.
        start: The first speed-up to try, above 0.
    """
    probes = 1
    low = high = start
    if sustains(start):
        while high <= _WIDEST * start:
            low, high = high, high * _STEP
            probes += 1
            if not sustains(high):
                break
        else:
            return Sustained(high, probes)
    else:
        while low >= start / _WIDEST:
            low, high = low / _STEP, low
            probes += 1
            if sustains(low):
                break
        else:
            return Sustained(None, probes)
    while high / low > 1 + PRECISE:
        probes += 1
        middle = (low * high) ** 0.5
        low, high = (middle, high) if sustains(middle) else (low, middle)
    return Sustained(low, probes)
