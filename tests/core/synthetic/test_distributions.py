"""Laws of keys and distributions of amounts, against those of SciPy and by their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adapt.core.errors import UsageError
from adapt.core.synthetic.distribution import Distribution
from adapt.core.synthetic.self_similar_keys import SelfSimilarKeys

ROWS = 100_000


def share_of_first(part, hot):
    """The rows of the first part of self-similar keys, by what defines them: h^n of the keys have (1 - h)^n."""
    return part ** (math.log1p(-hot) / math.log(hot))


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("uniform(2, 5)", stats.uniform(2, 3)),
        ("exponential(100)", stats.expon(scale=100)),
        ("LogNormal(100, 0.5)", stats.lognorm(0.5, scale=100)),
        (" pareto( 10 , 1.5 ) ", stats.pareto(1.5, scale=10)),
    ],
)
def test_values_follow_the_law(text, law):
    drawn = Distribution.parse("--cost", text).draw(np.random.default_rng(4), ROWS)
    assert drawn.min() >= 0
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-3


def test_a_constant_is_one():
    assert set(Distribution.parse("--cost", "constant(4.5)").draw(np.random.default_rng(0), 9)) == {4.5}


@given(st.floats(0, 1e300), st.floats(1e-300, 1e300))
def test_a_distribution_is_read_as_it_is_written(low, high):
    one = Distribution("lognormal", (high, low))
    assert Distribution.parse("--cost", one.text) == one


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cost", "--cost 'cost' is no distribution"),
        ("normal(1, 2)", "there is no distribution 'normal'; did you mean 'lognormal'"),
        ("lognormal(1)", r"write lognormal\(median, sigma\), not 1 parameters"),
        ("constant(x)", r"write constant\(value\) with numbers"),
        ("exponential(0)", "mean must be above 0"),
        ("constant(-1)", "value must be 0 or more"),
        ("constant(nan)", "value must be 0 or more"),
        ("uniform(3, 2)", "low is above high"),
    ],
)
def test_what_is_none_is_refused(text, says):
    with pytest.raises(UsageError, match=says):
        Distribution.parse("--cost", text)


@pytest.mark.parametrize("hot", [0.5, 0.2, 0.05])
def test_self_similar_keys_have_their_shares_at_every_scale(hot):
    keys = SelfSimilarKeys(10_000, hot)
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


@pytest.mark.parametrize(
    ("domain", "hot", "says"), [(0, 0.2, "--domain is 0"), (5, 0, "--hot is 0"), (5, 0.6, "--hot is 0.6")]
)
def test_no_law_of_keys(domain, hot, says):
    with pytest.raises(UsageError, match=says):
        SelfSimilarKeys(domain, hot)
