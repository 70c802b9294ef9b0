"""Confidence intervals of means from few runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.statistics.student import student_quantile

LEVEL = 0.95
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
