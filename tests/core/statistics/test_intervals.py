"""Quantiles of Student's t, and the intervals that they give."""

from math import inf

import numpy as np
import pytest
from scipy.stats import t

from adapt.core.statistics.intervals import Spread, mean_bounds, student_quantile


def test_an_interval_of_a_mean_is_the_one_in_the_tables():
    low, high = mean_bounds([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (low + high) / 2 == pytest.approx(3)
    assert (high - low) / 2 == pytest.approx(2.132 * (2.5 / 5) ** 0.5, rel=1e-3)
    assert mean_bounds([1.0]) == (-inf, inf)
    assert mean_bounds([2.0, 2.0]) == (2.0, 2.0)


def test_intervals_hold_as_often_as_they_say():
    """With the variance of other groups, of one measurement too."""
    chance = np.random.default_rng(3)
    pooled = Spread()
    for _ in range(20):
        pooled = pooled.with_group(list(chance.normal(0, 2, 4)))
    assert pooled.freedom == 60
    for runs, spread in ((5, None), (5, pooled), (1, pooled)):
        bounds = [mean_bounds(list(each), pooled=spread) for each in chance.normal(7, 2, (1000, runs))]
        assert sum(low <= 7 <= high for low, high in bounds) >= 880, (runs, spread)
    wide, narrow = (mean_bounds([0.0, 0.1, 0.2], pooled=spread) for spread in (None, Spread(0.6, 60)))
    assert wide[1] - wide[0] > narrow[1] - narrow[0] > 0


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.975, 0.99, 0.999])
@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 23, 200])
def test_quantiles_are_those_of_scipy(level, freedom):
    assert student_quantile(level, freedom) == pytest.approx(t.ppf(level, freedom), rel=1e-9, abs=1e-9)
