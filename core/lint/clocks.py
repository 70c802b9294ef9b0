"""Clocks that disagree: two streams whose ups and downs are alike once one of them is put forward by some hours."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.lint.thresholds import CLOCK_BINS, CLOCK_CORRELATION, CLOCK_LAG_S, CLOCK_RATIO

MINUTE_US = 60_000_000
WIDTHS_US = tuple(minutes * MINUTE_US for minutes in (1, 2, 5, 10))
STEP_S = 1800
WINDOW_S = 3600
"""What lasts longer than an hour is taken out before streams are compared: the course of a day is shifted between parts
of the world by nature, not by a wrong clock."""

FEWEST_S = 2 * CLOCK_LAG_S
"""A shorter trace leaves too little that two streams have in common at the largest shift."""

FEWEST_OVERLAP = 60
"""Bins of which a correlation is taken."""


@dataclass(frozen=True, slots=True)
class ClockGrid:
    """Bins of time in which the activity of streams is held; microseconds."""

    start_us: int
    width_us: int
    bins: int

    @classmethod
    def over(cls, first_us: int, last_us: int) -> "ClockGrid":
        """The finest grid that holds all rows, or the coarsest over the first of them."""
        span = last_us - first_us + 1
        width = next((width for width in WIDTHS_US if span <= width * (CLOCK_BINS - 1)), WIDTHS_US[-1])
        start = first_us // width * width
        return cls(start, width, min(CLOCK_BINS, (last_us - start) // width + 1))


@dataclass(frozen=True, slots=True)
class Shift:
    """Two streams that are alike at another shift than none.

    Attributes:
        stream, other: Their places among the streams.
        ahead_s: What must be added to the times of `stream` so that the two agree; seconds.
        at_shift: Correlation of their short-lived ups and downs then.
        as_is: The same without a shift.
    """

    stream: int
    other: int
    ahead_s: int
    at_shift: float
    as_is: float


def shifts(activity: Sequence[NDArray[np.int64]], grid: ClockGrid) -> list[Shift]:
    """Pairs of streams whose clocks disagree by whole or half hours, best first.

    What is compared is the square root of the rows of each bin (so that a busy hour counts no more than a quiet one),
    less its mean over an hour.

    Args:
        activity: Rows by bin, for each stream; shape (bins,).
    """
    if grid.bins * grid.width_us < FEWEST_S * 1_000_000:
        return []
    window = WINDOW_S * 1_000_000 // grid.width_us + 1
    rough = [_residual(np.sqrt(rows), int(window)) for rows in activity]
    step = STEP_S * 1_000_000 // grid.width_us
    most = CLOCK_LAG_S // STEP_S
    found = []
    for one, other in combinations(range(len(rough)), 2):
        lags = np.arange(-most, most + 1)
        at = np.array([_correlation(rough[one], rough[other], int(lag * step)) for lag in lags])
        best = int(at.argmax())
        elsewhere = np.delete(at, best)
        if at[best] >= CLOCK_CORRELATION and at[best] >= CLOCK_RATIO * elsewhere.max() and lags[best]:
            found.append(Shift(one, other, int(lags[best]) * STEP_S, float(at[best]), float(at[most])))
    return sorted(found, key=lambda shift: (-shift.at_shift, shift.stream, shift.other))


def agreed(names: Sequence[str], activity: Sequence[NDArray[np.int64]], grid: ClockGrid) -> dict[str, Any]:
    """What the clocks of these streams are to one another, as plain data: names, and the pairs that disagree."""
    told = [
        [names[shift.stream], names[shift.other], shift.ahead_s, shift.at_shift, shift.as_is]
        for shift in shifts(activity, grid)
    ]
    return {"names": list(names), "width_s": grid.width_us // 1_000_000, "shifts": told}


def _residual(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """The values less their mean over a centred window, which is cut short at both ends."""
    half = window // 2
    sums = np.concatenate(([0.0], np.cumsum(values)))
    at = np.arange(len(values))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(values))
    return np.asarray(values - (sums[high] - sums[low]) / (high - low))


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64], lag: int) -> float:
    """Of `one`, put forward by `lag` bins, with `other`, over the bins that both have; 0 where there are too few."""
    if lag >= 0:
        first, second = one[: len(one) - lag], other[lag:]
    else:
        first, second = one[-lag:], other[:lag]
    if len(first) < FEWEST_OVERLAP:
        return 0.0
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / scale if scale > 0 else 0.0
