"""Rates, popularity and amounts of synthetic streams."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adapt.core.errors import UsageError
from adapt.core.random_bits import substream, uniforms
from adapt.core.synthetic.distribution import Distribution
from adapt.core.synthetic.popularity import DRIFTING_RANKS, MOST_DRIFTS, SelfSimilarKeys, drifted, lived
from adapt.core.synthetic.rates import rate_path
from adapt.core.synthetic.variation import Bursts, Diurnal, Drift, Lags, Variation
from adapt.core.units.amounts import bytes_of, micros_of

bursts = st.builds(Bursts, st.floats(1.5, 50), st.floats(10, 1000), st.floats(5, 500))
diurnals = st.builds(Diurnal, st.floats(0, 1), st.floats(1000, 90_000))
lags = st.builds(lambda streams, lag: Lags(streams, lag if streams > 1 else 0), st.integers(1, 4), st.floats(0, 500))


@given(st.integers(1, 100_000), st.none() | diurnals, st.none() | bursts, lags, st.integers(0, 2**64 - 1))
def test_expected_rows_and_times_are_inverse_and_rising(rows, diurnal, bursts, lags, seed):
    path = rate_path(rows, 100.0, seed, diurnal, bursts, lags)
    assert path.expected[-1] >= rows
    assert (np.diff(path.breaks_s) > 0).all()
    assert (np.diff(path.expected) >= 0).all()
    asked = np.linspace(0, rows, 50)
    times = path.times_s(asked)
    assert (np.diff(times) >= 0).all()
    assert np.interp(times, path.breaks_s, path.expected) == pytest.approx(asked, rel=1e-9, abs=1e-6)
    assert path.shares[:, -1] == pytest.approx(np.ones(len(path.shares)))


@given(st.integers(1000, 50_000), st.none() | diurnals, bursts, st.integers(0, 1000))
def test_more_rows_change_nothing_of_what_comes_before(rows, diurnal, bursts, seed):
    short = rate_path(rows, 50.0, seed, diurnal, bursts, Lags())
    long = rate_path(3 * rows, 50.0, seed, diurnal, bursts, Lags())
    asked = np.linspace(0, rows, 20)
    assert long.times_s(asked) == pytest.approx(short.times_s(asked), rel=1e-12)


def test_a_day_has_its_trough_at_the_start_and_its_peak_in_the_middle():
    path = rate_path(10 * 86_400, 10.0, 0, Diurnal(0.5), None, Lags())
    rates = np.diff(path.expected) / np.diff(path.breaks_s)
    day = rates[:288]
    assert day[0] == pytest.approx(5, rel=1e-3)
    assert day[144] == pytest.approx(15, rel=1e-3)
    assert day.mean() == pytest.approx(10)


def test_bursts_have_the_factor_the_lengths_and_the_average_asked_for():
    of = Bursts(8.0, 90.0, 10.0)
    path = rate_path(20_000_000, 1000.0, 3, None, of, Lags())
    rates, lasting = np.diff(path.expected) / np.diff(path.breaks_s), np.diff(path.breaks_s)
    quiet, high = np.unique(rates.round(6))
    assert high == pytest.approx(8 * quiet, rel=1e-6)
    assert quiet == pytest.approx(1000 / 1.7)
    in_burst = lasting[rates > 2 * quiet]
    assert len(in_burst) > 150
    # exponential lengths: five standard errors
    assert in_burst.mean() == pytest.approx(10, abs=50 / math.sqrt(len(in_burst)))
    assert in_burst.std() == pytest.approx(10, rel=0.35)
    assert path.expected[-1] / path.breaks_s[-1] == pytest.approx(1000, rel=0.15)


def test_a_stream_has_the_rate_of_the_one_before_a_lag_earlier():
    of = Bursts(5.0, 60.0, 30.0)
    path = rate_path(500_000, 300.0, 5, None, of, Lags(3, 7.0))
    shares = np.diff(path.shares, axis=1, prepend=0)
    totals = np.diff(path.expected) / np.diff(path.breaks_s)

    def rate(stream, at):
        stretch = np.searchsorted(path.breaks_s, at, side="right") - 1
        return shares[stretch, stream] * totals[stretch]

    at = np.linspace(20, path.breaks_s[-1] - 1, 997)
    for stream in (1, 2):
        assert rate(stream, at) == pytest.approx(rate(0, at - 7.0 * stream), rel=1e-6)
        assert rate(stream, np.array([0.5 * stream])) == pytest.approx([100.0])


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Diurnal(1.5), r"swing must be from 0 to 1 \(got 1.5\)"),
        (lambda: Diurnal(0.5, 0), "period_s must be above 0"),
        (lambda: Bursts(1, 1, 1), r"factor must be above 1 \(got 1\)"),
        (lambda: Bursts(2, 0, 1), "every_s must be above 0"),
        (lambda: Bursts(2, 1, 0), "for_s must be above 0"),
        (lambda: Lags(0), r"streams must be from 1 to 1,000 \(got 0\)"),
        (lambda: Lags(1, 3.0), "lag_s needs streams of 2 or more"),
        (lambda: rate_path(10**9, 1.0, 0, None, Bursts(2, 1, 1), Lags()), "would change"),
    ],
)
def test_what_cannot_be_is_refused(made, says):
    with pytest.raises(UsageError, match=says):
        made()


def plain_drift(rank, epoch, domain, share, seed):
    ranks = min(domain, DRIFTING_RANKS)
    keys = list(range(1, ranks + 1))
    for now in range(1, epoch + 1):
        drawn = uniforms(substream(seed, 2), np.arange(2 * ranks * now, 2 * ranks * (now + 1)))
        for at in range(ranks):
            if drawn[at] < share:
                other = min(int(math.exp(drawn[ranks + at] * math.log(ranks + 1.0))), ranks) - 1
                keys[at], keys[other] = keys[other], keys[at]
    return keys[rank - 1] if rank <= ranks else rank


@settings(max_examples=30)
@given(st.integers(1, 60), st.floats(0.01, 1), st.integers(0, 2**64 - 1), st.data())
def test_drift_is_that_of_a_plain_loop_whatever_was_asked_before(domain, share, seed, data):
    times = np.sort(np.array(data.draw(st.lists(st.floats(0, 50), min_size=1, max_size=20))))
    ranks = np.array(data.draw(st.lists(st.integers(1, domain), min_size=len(times), max_size=len(times))))
    drift = Drift(7.0, share)
    wanted = [plain_drift(rank, int(time // 7), domain, share, seed) for rank, time in zip(ranks, times, strict=True)]
    half = len(times) // 2
    # the later rows first: what is kept from them must not show
    assert drifted(ranks[half:], times[half:], domain, drift, seed).tolist() == wanted[half:]
    assert drifted(ranks, times, domain, drift, seed).tolist() == wanted


def test_a_drift_moves_about_its_share_of_the_heavy_ranks_and_none_of_the_light():
    ranks = np.arange(1, 10_001)
    keys = drifted(ranks, np.full(10_000, 1.5), 10_000, Drift(1.0, 0.1), 7)
    assert sorted(keys) == ranks.tolist()
    assert (keys[DRIFTING_RANKS:] == ranks[DRIFTING_RANKS:]).all()
    moved = np.count_nonzero(keys != ranks)
    assert 0.1 * DRIFTING_RANKS < moved < 0.2 * DRIFTING_RANKS


@given(st.floats(0.1, 100), st.integers(1, 50), st.integers(0, 1000))
def test_keys_live_equally_long_and_are_followed_by_fresh_ones(seconds, domain, seed):
    times = np.linspace(0, 10 * seconds, 400)
    for key in {1, domain}:
        keys = lived(np.full(400, key), times, domain, seconds, seed)
        assert keys[0] == key
        assert set(np.diff(keys)) <= {0, domain}
        assert keys[-1] in (key + 9 * domain, key + 10 * domain)
        _, rows = np.unique(keys, return_counts=True)
        assert (np.abs(rows[1:-1] - 39.9) < 1.5).all()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Drift(0), "every_s must be above 0"),
        (lambda: Drift(1, 0), r"share must be above 0 and at most 1 \(got 0\)"),
        (lambda: Drift(1, 1.1), r"\(got 1.1\)"),
        (lambda: Variation(life_s=0), "life_s must be above 0"),
        (lambda: drifted(np.array([1]), np.array([MOST_DRIFTS + 1.0]), 5, Drift(1.0), 0), "more than 200,000"),
    ],
)
def test_what_cannot_be_is_refused_of_popularity(made, says):
    with pytest.raises(UsageError, match=says):
        made()


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
