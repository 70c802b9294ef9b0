"""The largest rate that a mechanism sustains: found by bisection over the speed of a stream."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapt.core.stage.engine.series import Interval

GROWTH = 0.005
"""Of the length of the stream: rows may wait so much longer in its second half than in the first."""

SHED = 0.01
"""Of the rows, that may be dropped at a rate that is sustained."""

PRECISE = 0.01
"""The rate that is found is at most by this part below one that is not sustained."""

_STEP = 1.5
_WIDEST = 64.0


@dataclass(frozen=True, slots=True)
class Sustained:
    """What a mechanism sustains.

    Attributes:
        speedup: The largest speed found that is sustained, up to some 64 times that where it was looked for first;
            None, none down to a 64th of that is.
        probes: How many speeds were tried.
    """

    speedup: float | None
    probes: int


def is_sustained(intervals: Sequence[Interval], last_s: float) -> bool:
    """Whether lag stays bounded: rows wait no longer in the second half of the input than in the first.

    No longer is, by less than half a hundredth of the input's length. The lag of a steady stream that is by a part e
    faster than a stage grows by e for each second; so what is found is at most by 1% too fast. A mechanism that takes
    a while to act may fall behind at first, if it does not fall behind for ever. One that sheds sustains a rate of
    which it drops 1% at most.

    Args:
        intervals: What the stage did until the last row was due, or longer.
        last_s: When that was.
    """
    due = [one for one in intervals if one.start_s < last_s]
    first = [_longest_wait_s(one) for one in due if one.end_s <= last_s / 2]
    second = [_longest_wait_s(one) for one in due if one.end_s > last_s / 2]
    shed = sum(one.shed for one in due)
    done = sum(one.processed for one in due)
    grows = max(second, default=0.0) - max(first, default=0.0) > GROWTH * last_s
    return not grows and shed <= SHED * (shed + done)


def _longest_wait_s(one: Interval) -> float:
    """The longest from when a row is due until it is processed, or until it is taken if that is longer."""
    return max(one.total.max_s, one.lag_s)


def largest_sustained(sustains: Callable[[float], bool], start: float) -> Sustained:
    """The largest speed that is sustained, to 1%; what is sustained at one speed is taken to be so at lower ones.

    Args:
        start: Where it is looked for first, above 0.
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
