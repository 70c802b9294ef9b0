"""Detect streams whose activity correlates only after a shift of hours."""

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
"""Trends longer than an hour are removed before streams are compared: daily cycles differ between regions by nature,
not because of a wrong clock."""

FEWEST_S = 2 * CLOCK_LAG_S
"""In a shorter trace, two streams overlap too little at the largest shift."""

FEWEST_OVERLAP = 60
"""Fewest common bins for a correlation."""


@dataclass(frozen=True, slots=True)
class ClockGrid:
    """Time bins for the activity of streams; microseconds."""

    start_us: int
    width_us: int
    bins: int

    @classmethod
    def over(cls, first_us: int, last_us: int) -> "ClockGrid":
        """The finest grid that covers all rows, or else the coarsest."""
        span = last_us - first_us + 1
        width = next((width for width in WIDTHS_US if span <= width * (CLOCK_BINS - 1)), WIDTHS_US[-1])
        start = first_us // width * width
        return cls(start, width, min(CLOCK_BINS, (last_us - start) // width + 1))


@dataclass(frozen=True, slots=True)
class Shift:
    """Two streams that correlate best at a nonzero shift."""

    stream: int  # stream, other: indices of the streams
    other: int
    ahead_s: int  # seconds to add to the times of `stream` so that both agree
    at_shift: float  # correlation of their short-term activity at that shift
    as_is: float  # correlation without a shift


def shifts(activity: Sequence[NDArray[np.int64]], grid: ClockGrid) -> list[Shift]:
    """Pairs of streams with shifted clocks, highest correlation first.

    Compares the square root of the rows of each bin, so that busy and quiet hours count alike, minus its mean over an
    hour.

    Args:
        activity: Rows per bin of each stream; shape (bins,).
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
    """Stream names and the pairs whose clocks differ, as plain data."""
    found = [
        [names[shift.stream], names[shift.other], shift.ahead_s, shift.at_shift, shift.as_is]
        for shift in shifts(activity, grid)
    ]
    return {"names": list(names), "width_s": grid.width_us // 1_000_000, "shifts": found}


def _residual(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Values minus their mean over a centered window, shortened at both ends."""
    half = window // 2
    sums = np.concatenate(([0.0], np.cumsum(values)))
    at = np.arange(len(values))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(values))
    return np.asarray(values - (sums[high] - sums[low]) / (high - low))


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64], lag: int) -> float:
    """Correlation of `one`, shifted forward by `lag` bins, with `other` over common bins; 0 if too few."""
    if lag >= 0:
        first, second = one[: len(one) - lag], other[lag:]
    else:
        first, second = one[-lag:], other[:lag]
    if len(first) < FEWEST_OVERLAP:
        return 0.0
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / scale if scale > 0 else 0.0
