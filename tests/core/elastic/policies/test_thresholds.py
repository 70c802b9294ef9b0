"""Thresholds: how many workers at the start, when there are to be more, and how shedding hides that."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapt.core.elastic.policies.names import Signal
from adapt.core.elastic.policies.scaler import ScaleOn
from adapt.core.elastic.policies.thresholds import ThresholdScaling, initial_workers, starts_at, workers_for
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.shed_factor import ShedFactor, Thresholds
from tests.core.elastic.observations import seen

W = 10_000
TAUS = Thresholds(0.1, 0.4, 0.8, 0.9)


@st.composite
def thresholds(draw):
    """Any four in their order, some distance apart."""
    steps = np.cumsum(draw(st.lists(st.floats(0.05, 1), min_size=4, max_size=4)))
    return Thresholds(*(steps / max(1.0, steps[-1])).tolist())


def settled(rho, factor):
    """Where a worker settles that is offered rho: tau = rho (1 - SF(tau)), by halving."""
    low, high = 0.0, rho
    for _ in range(100):
        middle = (low + high) / 2
        taken = rho * (1 - float(factor.part(np.array([middle]))[0]))
        low, high = (middle, high) if taken > middle else (low, middle)
    return low


def test_the_workers_at_the_start_are_those_of_the_paper():
    assert initial_workers(1000, 60, 10_000, 0.4) == 15
    assert initial_workers(1001, 60, 10_000, 0.4) == 16
    assert initial_workers(0, 60, 10_000, 0.4) == 1
    with pytest.raises(UsageError, match="must be at least 0 tuples/s"):
        initial_workers(-1, 60, 10_000, 0.4)


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(1, 10**6), st.integers(1, 99))
def test_the_workers_at_the_start_are_the_fewest_expected_to_be_filled_to_tau1(rate, window, capacity, percent):
    exact = math.ceil(Fraction(rate * window, capacity) / Fraction(percent, 100))
    assert initial_workers(rate, window, capacity, percent / 100) == max(1, exact)


@pytest.mark.parametrize(("tau", "workers"), [(0.1, 1), (0.11, 4), (0.5, 4), (0.89, 4), (0.9, 9), (1.0, 10)])
def test_between_tau0_and_tau3_nothing_changes_and_beyond_it_goes_to_tau1(tau, workers):
    policy = ThresholdScaling(TAUS, capacity_tuples=W)
    assert policy.wanted(seen(workers=4, held=round(4 * tau * W))) == workers


@pytest.mark.parametrize(("signal", "workers"), [(Signal.HELD, 4), (Signal.OFFERED, 12)])
def test_what_is_shed_counts_for_offered_alone(signal, workers):
    policy = ThresholdScaling(TAUS, signal, W)
    assert policy.wanted(seen(workers=4, held=round(0.85 * 4 * W), offered=round(1.2 * 4 * W))) == workers


def test_workers_that_hold_nothing_are_full_when_they_always_work():
    busy = np.array([1.0, 1.0, 1.0, 0.8])
    assert ThresholdScaling(TAUS, scale_on=ScaleOn.parse("mean")).wanted(seen(busy_s=busy)) == 10
    assert ThresholdScaling(TAUS).wanted(seen(busy_s=busy)) == 10
    half = seen(busy_s=np.full(4, 0.5), arrived=800)
    assert ThresholdScaling(TAUS).wanted(half) == 4
    assert ThresholdScaling(TAUS, Signal.OFFERED).wanted(half) == 10


@pytest.mark.parametrize(
    ("scale_on", "workers"),
    [("mean", 4), ("busiest", 10), ("25%", 10), ("26%", 9), ("50%", 9), ("75%", 4), ("100%", 1)],
)
def test_one_full_worker_is_seen_where_it_is_watched(scale_on, workers):
    policy = ThresholdScaling(TAUS, capacity_tuples=W, scale_on=ScaleOn.parse(scale_on))
    assert policy.wanted(seen(workers=4, held=np.array([W, 0.9 * W, 0.2 * W, 0.05 * W]))) == workers


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 1))
def test_a_share_of_workers_is_at_or_above_what_is_watched(taus, share):
    watched = ScaleOn(share).of(np.array(taus))
    assert sum(tau >= watched for tau in taus) >= share * len(taus) * (1 - 1e-12)
    assert sum(tau > watched for tau in taus) < share * len(taus)


@pytest.mark.parametrize("text", ["median", "", "150%", "-1%", "0.5", "x%"])
def test_what_cannot_be_watched_is_said(text):
    with pytest.raises(UsageError, match="scale-on takes busiest, mean, or a share of workers"):
        ScaleOn.parse(text)


@pytest.mark.parametrize("text", ["busiest", "mean", "25%", "100%"])
def test_what_is_watched_is_written_as_it_is_read(text):
    assert str(ScaleOn.parse(text)) == text


@pytest.mark.parametrize("tau2", [0.8, 0.5])
def test_shedding_hides_the_load_from_the_signal_held(tau2):
    """With B = 0, tau2 = 0.8, tau3 = 0.9 from 1.8 times what workers hold, when half of the input is shed already."""
    of, factor = Thresholds(0.1, 0.4, tau2, 0.9), ShedFactor(tau2)
    start = starts_at(of, factor, Signal.HELD)
    assert start == pytest.approx(0.9 / (1 - (0.9 - tau2) / (1 - tau2)))
    for rho in (0.99 * start, 1.01 * start):
        held = settled(rho, factor)
        wanted = ThresholdScaling(of, capacity_tuples=W).wanted(seen(workers=4, held=round(4 * held * W)))
        assert (wanted > 4) == (rho > start)


def test_offered_starts_at_tau3_and_tau3_of_1_is_never_held():
    of, factor = Thresholds(0.1, 0.4, 0.8, 0.9), ShedFactor(0.8)
    assert starts_at(of, factor, Signal.HELD) == pytest.approx(1.8)
    assert starts_at(of, factor, Signal.OFFERED) == 0.9
    assert starts_at(of, None, Signal.HELD) == 0.9
    full = Thresholds(0.1, 0.4, 0.8, 1.0)
    assert starts_at(full, factor, Signal.HELD) == math.inf
    assert starts_at(full, factor, Signal.OFFERED) == 1.0
    for rho in (1.0, 5.0, 1000.0):
        held = math.floor(4 * settled(rho, factor) * W)
        assert ThresholdScaling(full, capacity_tuples=W).wanted(seen(workers=4, held=held)) == 4


@given(thresholds(), st.floats(0, 1), st.floats(0.1, 20))
def test_workers_start_to_be_asked_for_where_it_is_said(of, least, rho):
    factor = ShedFactor(of.tau2, least) if of.tau2 < 1 else None
    assume(factor is not None)
    start = starts_at(of, factor, Signal.HELD)
    assume(abs(rho / start - 1) > 1e-6)
    assert (settled(rho, factor) >= of.tau3) == (rho > start)


@given(st.floats(0, 1e4), st.floats(0.01, 1))
def test_as_few_workers_as_fit(load, tau):
    workers = workers_for(load, tau)
    assert load <= workers * tau * (1 + 1e-9)
    assert workers == 1 or load > (workers - 1) * tau * (1 - 1e-9)
