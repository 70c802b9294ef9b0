"""Means over seeds with 95 % confidence intervals."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.stats import t

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean over independent runs, with Student's t intervals.

    Attributes:
        mean: Mean over all runs.
        deviation: Standard deviation of one run; 0 for a single run, which is taken as exact.
        runs: Number of runs.
    """

    mean: float
    deviation: float
    runs: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Estimate":
        """Estimate from one number per run; at least one run."""
        numbers = list(values)
        return cls(fmean(numbers), stdev(numbers) if len(numbers) > 1 else 0.0, len(numbers))

    @property
    def reach(self) -> float:
        """Half the length of the 95 % interval of the mean."""
        return self._reach(1 / self.runs)

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval of the mean."""
        return self.mean - self.reach

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval of the mean."""
        return self.mean + self.reach

    def of_others(self, runs: int) -> tuple[float, float]:
        """95 % interval of the mean of this many other runs."""
        reach = self._reach(1 / self.runs + 1 / runs)
        return self.mean - reach, self.mean + reach

    def _reach(self, variance: float) -> float:
        if self.deviation == 0:
            return 0.0
        return float(t.ppf((1 + CONFIDENCE) / 2, self.runs - 1)) * self.deviation * math.sqrt(variance)
