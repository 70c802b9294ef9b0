"""Laws of keys and distributions of amounts, against those of SciPy and by their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adapt.core.errors import UsageError
from adapt.core.synthetic.distribution import Distribution
from adapt.core.synthetic.popularity import SelfSimilarKeys
from adapt.core.units.amounts import bytes_of, micros_of

ROWS = 100_000


def share_of_first(part, hot):
    """The rows of the first part of self-similar keys, by what defines them: h^n of the keys have (1 - h)^n."""
    return part ** (math.log1p(-hot) / math.log(hot))


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("uniform(2us, 5us)", stats.uniform(2, 3)),
        ("exponential(0.1ms)", stats.expon(scale=100)),
        ("LogNormal(100us, 0.5)", stats.lognorm(0.5, scale=100)),
        (" pareto( 10 us , 1.5 ) ", stats.pareto(1.5, scale=10)),
    ],
)
def test_values_follow_the_law(text, law):
    drawn = Distribution.parse(text, micros_of).draw(np.random.default_rng(4), ROWS)
    assert drawn.min() >= 0
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-3


@given(st.floats(1, 1e15), st.floats(0, 1e300))
def test_a_distribution_is_read_as_it_is_written(median, sigma):
    one = Distribution("lognormal", (median, sigma))
    assert Distribution.parse(one.text("us"), micros_of) == one
    assert Distribution.parse(one.text("B"), bytes_of) == one


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cost", "'cost' is not a distribution; did you mean 'constant'"),
        ("normal(1, 2)", "is not a distribution; did you mean 'lognormal'"),
        ("lognormal(1us)", r"must be lognormal\(median, sigma\) \(got 1 parameters\)"),
        ("constant(x)", "value 'x' is not a duration"),
        ("exponential(100)", r"mean 100 needs a unit: 100us or 100ms\?"),
        ("lognormal(5us, x)", r"sigma must be a number \(got 'x'\)"),
        ("exponential(0us)", "mean must be above 0"),
        ("constant(-1us)", "value '-1us' is not a duration"),
        ("lognormal(1us, -1)", r"sigma must be 0 or more \(got -1\)"),
        ("uniform(3us, 2us)", "low must not be above high"),
    ],
)
def test_what_is_none_is_refused(text, says):
    with pytest.raises(UsageError, match=says):
        Distribution.parse(text, micros_of)


def test_self_similar_keys_have_their_shares_at_every_scale():
    hot = 0.2
    keys = SelfSimilarKeys(10_000)
    ranks = keys.ranks(np.random.default_rng(2).random(ROWS))
    assert ranks.min() == 1
    assert ranks.max() <= 10_000
    first = 10_000
    for _ in range(3):
        first = int(first * hot)
        wanted = share_of_first(first / 10_000, hot)
        seen = np.count_nonzero(ranks <= first) / ROWS
        assert abs(seen - wanted) < 4.5 * (wanted * (1 - wanted) / ROWS) ** 0.5
    assert share_of_first(hot, hot) == pytest.approx(1 - hot)
    shares = np.diff([share_of_first(k / 10_000, hot) for k in range(51)])
    seen = np.bincount(ranks, minlength=51)[1:51]
    rest = 1 - shares.sum()
    assert stats.chisquare([*seen, ROWS - seen.sum()], [*shares * ROWS, rest * ROWS]).pvalue > 1e-3
