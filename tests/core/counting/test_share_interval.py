"""The interval of the heaviest key's share: against scipy, and how often it holds the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammainc
from scipy.stats import beta

from adapt.core.counting.frequencies import top_share_interval
from adapt.core.statistics.beta import beta_part


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(1e-6, 1 - 1e-6))
def test_the_beta_function_is_that_of_scipy(a, b, x):
    assert beta_part(a, b, x) == pytest.approx(beta.cdf(x, a, b), rel=1e-7, abs=1e-12)


@given(st.integers(1, 10**5), st.integers(10**14, 2**63), st.floats(-4, 4))
def test_the_beta_function_of_a_rare_key_is_the_limit_of_poisson(a, b, away):
    x = max(a + away * a**0.5, 1e-3) / b
    assert beta_part(a, b, x) == pytest.approx(gammainc(a, b * x), abs=2e-4)


@given(st.integers(10**6, 2**62), st.integers(10**6, 2**62))
def test_the_interval_of_many_messages_is_the_normal_one(count, more):
    messages = count + more
    share = count / messages
    assert top_share_interval(count, count, messages)[1] - share == pytest.approx(
        1.959964 * (share * (1 - share) / messages) ** 0.5, rel=0.01, abs=1e-15
    )


@given(st.integers(0, 500), st.integers(1, 500))
def test_the_upper_end_is_that_of_clopper_and_pearson_and_the_lower_is_below_theirs(count, more):
    messages = count + more
    low, high = top_share_interval(count, count, messages)
    assert high == pytest.approx(beta.ppf(0.975, count + 1, more), rel=1e-9)
    assert 0 <= low <= (beta.ppf(0.025, count, more + 1) if count else 0) <= count / messages


@pytest.mark.parametrize(
    "shares", [np.full(200, 1 / 200), np.full(3, 1 / 3), np.arange(1, 101) ** -1.0, np.array([0.6, 0.3, 0.1])]
)
@pytest.mark.parametrize("messages", [30, 1000])
def test_the_truth_is_inside_as_often_as_is_promised(shares, messages):
    shares = shares / shares.sum()
    counts = np.random.default_rng(7).multinomial(messages, shares, size=300).max(axis=1)
    ends = {count: top_share_interval(int(count), int(count), messages) for count in np.unique(counts)}
    inside = [ends[count][0] <= shares.max() <= ends[count][1] for count in counts]
    assert np.mean(inside) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)


def test_counts_within_bounds_widen_the_interval():
    low, high = top_share_interval(90, 110, 1000)
    assert (low, high) == (top_share_interval(90, 90, 1000)[0], top_share_interval(110, 110, 1000)[1])
