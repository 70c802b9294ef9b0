"""Confidence intervals, and the distributions that they need."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from adapt.core.statistics.beta import beta_part

_HALVINGS = 80


@cache
def student_quantile(level: float, freedom: int) -> float:
    """The quantile of Student's t distribution.

    Args:
        level: Probability of a smaller value, in [0.5, 1).
        freedom: Degrees of freedom, from 1.

    Source: Student, "The probable error of a mean", Biometrika 6, 1908.
    """
    low, high = 0.0, 1.0
    while _below(high, freedom) < level:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, freedom) < level else (low, middle)
    return (low + high) / 2


def _below(value: float, freedom: int) -> float:
    return 1 - beta_part(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2


LEVEL = 0.9
"""The confidence level."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Variance within groups of measurements, pooled."""

    squares: float = 0.0  # sum of squared deviations from the mean of each group
    freedom: int = 0  # degrees of freedom

    def with_group(self, values: Sequence[float]) -> "Spread":
        """The spread with another group."""
        mean = math.fsum(values) / len(values) if values else 0.0
        more = max(0, len(values) - 1)
        return Spread(self.squares + math.fsum((each - mean) ** 2 for each in values), self.freedom + more)

    def with_spread(self, other: "Spread") -> "Spread":
        """Both together."""
        return Spread(self.squares + other.squares, self.freedom + other.freedom)

    @property
    def variance(self) -> float:
        """The pooled variance."""
        return self.squares / self.freedom if self.freedom else math.inf


def mean_bounds(values: Sequence[float], level: float = LEVEL, pooled: Spread | None = None) -> tuple[float, float]:
    """A two-sided confidence interval of a mean, by Student's t.

    Args:
        values: Independent measurements, at least one.
        level: The confidence level.
        pooled: Variance that other groups share, if it is known better there; the larger of both variances counts.

    Source: Student, "The probable error of a mean", Biometrika 6, 1908.
    """
    mean, own = math.fsum(values) / len(values), Spread().with_group(values)
    spread = own if pooled is None or pooled.freedom <= own.freedom else pooled
    if not spread.freedom:
        return -math.inf, math.inf
    variance = max(spread.variance, own.variance) if own.freedom else spread.variance
    half = student_quantile((1 + level) / 2, spread.freedom) * math.sqrt(variance / len(values))
    return mean - half, mean + half
