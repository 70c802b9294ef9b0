"""Interval of the imbalance by the sampling of rows, without time.

Rows are taken as independent draws from a distribution that does not change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.out_of_sample.outcome import LEVEL
from adapt.core.out_of_sample.walk_forward import LEAST_GAIN
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.phrases import percent

HALVINGS = 9
"""Times that the rows are halved at random."""

Placing = Callable[[Floats], Channels | None]
"""Places keys by their counts, both of shape (keys,); None on failure."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """Imbalance of the distribution that counted rows were drawn from."""

    rows: int  # number of counted rows
    today: tuple[float, float]  # interval as placed today
    after: tuple[float, float] | None = None  # interval with the recommended plan; None without pins
    # imbalance of such a plan over today's, on rows that it was not built from; None without pins
    held_out: float | None = None
    level: float = LEVEL  # confidence of the intervals

    @property
    def fails_held_out(self) -> bool:
        """Whether pins do not lower the imbalance of rows held out."""
        return self.held_out is not None and np.log(self.held_out) > -LEAST_GAIN

    @property
    def sentence(self) -> str:
        """Both intervals in words."""
        after = ""
        if self.after is not None:
            after = f" and {self.after[0]:.3f} to {self.after[1]:.3f} with pinned keys, judged on rows held out"
        return (
            f"By the sampling of {self.rows:,} rows alone, the imbalance is {self.today[0]:.3f} to {self.today[1]:.3f}"
            f" today{after} ({percent(self.level)} confidence)."
        )

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Sampled":
        """Read the data of `asdict`."""
        after = data["after"]
        ends = None if after is None else tuple(after)
        return cls(data["rows"], tuple(data["today"]), ends, data["held_out"], data.get("level", LEVEL))


def by_sampling(
    counts: Floats,
    rows: int,
    placed: Channels,
    capacities: Floats,
    plan: Placing | None = None,
    error: float = 0.0,
    level: float = LEVEL,
) -> Sampled:
    """Intervals of the imbalance today and with a plan.

    A plan fits the noise of the rows that it was built from. So rows are halved at random; a plan is built from one
    half and judged on the other. The upper end is that of the judging half, the median of several halvings; the lower
    end is that of the plan from all rows on all rows, which flatters it.

    Args:
        counts: Rows of each key, shape (keys,).
        placed: Channel of each key today, shape (keys,).
        capacities: Of each channel, shape (channels,).
        plan: Builds the plan.
        error: Standard error of a channel's count by the keys that are not listed, in rows.
        level: Confidence of the intervals.
    """
    today = _interval(counts, placed, capacities, error, level)
    moved, whole = None if plan is None else plan(counts), np.floor(counts).astype(np.int64)
    if plan is None or moved is None:
        return Sampled(rows, today, level=level)
    chance, highest, ratios = np.random.default_rng(0), [], []
    for _ in range(HALVINGS):
        half = chance.binomial(whole, 0.5) + (counts - whole) / 2
        other = counts - half
        if not (half.any() and other.any()):  # of few rows, one half may have all
            continue
        from_half = plan(half)
        if from_half is None:
            continue
        highest.append(_interval(other, from_half, capacities, error / 2, level)[1])
        ratios.append(_imbalance(other, from_half, capacities) / _imbalance(other, placed, capacities))
    if not highest:
        return Sampled(rows, today, level=level)
    low, high = _interval(counts, moved, capacities, error, level)
    after = low, max(high, float(np.median(highest)))
    return Sampled(rows, today, after, float(np.exp(np.log(ratios).mean())), level)


def _imbalance(counts: Floats, placed: Channels, capacities: Floats) -> float:
    return max_over_mean(np.bincount(placed, counts, len(capacities)).astype(np.float64), capacities) or 1.0


def _interval(counts: Floats, placed: Channels, capacities: Floats, error: float, level: float) -> tuple[float, float]:
    """Interval of the highest utilization over the mean, by Wilson's score.

    The channel that is truly busiest is below its own upper end but for a chance of (1 - level) / 2, so the highest
    upper end bounds it. The highest lower end is that of a channel picked for its count, so all of them share that
    chance.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927; the union
    bound, ours.
    """
    channels, side = len(capacities), (1 - level) / 2
    total = float(counts.sum())
    shares = np.minimum(np.bincount(placed, counts, channels) / total, 1.0)  # sums in another order
    over_mean = capacities.sum() / capacities
    high, low = NormalDist().inv_cdf(1 - side), NormalDist().inv_cdf(1 - side / channels)
    most = float((_wilson(shares, total, high, error / total) * over_mean).max())
    least = float((_wilson(shares, total, -low, error / total) * over_mean).max())
    return max(1.0, least), max(1.0, most)


def _wilson(shares: Floats, rows: float, z: float, error: float) -> Floats:
    """Wilson's end of an interval, widened by a further standard error."""
    half = np.sqrt(shares * (1 - shares) / rows + error * error + z * z / (4 * rows * rows))
    return np.clip((shares + z * z / (2 * rows) + z * half) / (1 + z * z / rows), 0.0, 1.0)
