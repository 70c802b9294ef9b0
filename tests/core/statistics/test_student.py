"""The quantiles of Student's t distribution, against scipy."""

import pytest
from scipy.stats import t

from adapt.core.statistics.intervals import student_quantile


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.975, 0.99, 0.999])
@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 23, 200])
def test_quantiles_are_those_of_scipy(level, freedom):
    assert student_quantile(level, freedom) == pytest.approx(t.ppf(level, freedom), rel=1e-9, abs=1e-9)
