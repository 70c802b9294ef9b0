"""Rates that burst, follow the day and lag: by their definitions, at points and on average."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.synthetic.rates import rate_path
from adapt.core.synthetic.variation import Bursts, Diurnal, Lags

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
