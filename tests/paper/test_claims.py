"""The rule by which claims are judged, and the intervals that it rests on."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper.claims import (
    Range,
    Verdict,
    above,
    below,
    between,
    equal,
    printed,
    similar,
    verdict,
)
from paper.estimates import Estimate

samples = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def of(*values: float) -> Estimate:
    return Estimate.of(values)


def test_the_interval_of_the_mean_is_students():
    # Five numbers: t(0.975, 4) = 2.776, standard deviation sqrt(2.5).
    estimate = of(1, 2, 3, 4, 5)
    assert (estimate.mean, estimate.runs) == (3, 5)
    assert estimate.reach == pytest.approx(2.776 * math.sqrt(2.5 / 5), rel=1e-3)
    assert (estimate.low, estimate.high) == (3 - estimate.reach, 3 + estimate.reach)


@given(samples)
def test_the_mean_is_in_its_interval_and_that_in_the_one_of_fewer_runs(values):
    estimate = Estimate.of(values)
    low, high = estimate.of_others(1)
    assert low <= estimate.low <= estimate.mean <= estimate.high <= high


def test_intervals_cover_the_truth_as_often_as_they_say():
    random = np.random.default_rng(1)
    covered = sum(
        abs(Estimate.of(random.normal(0, 1, 20)).mean) <= e.reach
        for e in (Estimate.of(random.normal(0, 1, 20)) for _ in range(1000))
    )
    assert 0.9 < covered / 1000 < 0.99


@pytest.mark.parametrize(
    ("claimed", "ours", "expected"),
    [
        # numbers: five of our runs together may well give 1.32
        (printed("1.32"), of(1.2, 1.3, 1.4, 1.5), Verdict.HOLDS),
        (printed("1.32"), of(1.5, 1.5, 1.5, 1.51), Verdict.FAILS),
        (printed("1.5", departs=1), of(1.2, 1.21, 1.22), Verdict.DIRECTION),
        (printed("1.5", departs=1), of(0.8, 0.81, 0.82), Verdict.FAILS),
        (printed("0.5", departs=1), of(0.8, 0.81, 0.82), Verdict.DIRECTION),
        # so widely spread that five runs may give 1.5, but our mean is on the other side of what the claim departs from
        (printed("1.5", departs=1), of(0.1, 0.9, 1.7), Verdict.FAILS),
        (printed("1.5", departs=1), of(0.4, 1.1, 1.9), Verdict.HOLDS),
        (between(30, 40), of(33.0), Verdict.HOLDS),
        (between(30, 40), of(41.0), Verdict.FAILS),
        (between(0, 0), of(0.0), Verdict.HOLDS),
        # orders: proved, leaning, refuted
        (above(0), of(0.1, 0.2, 0.3), Verdict.UNCLEAR),
        (above(0), of(0.19, 0.2, 0.21), Verdict.HOLDS),
        (above(0), of(-0.1, -0.2, 0.2), Verdict.FAILS),
        (below(1), of(0.9, 0.91, 0.92), Verdict.HOLDS),
        (below(1), of(0.9, 1.05), Verdict.UNCLEAR),
        # a direction needs a margin beyond the spread
        (above(1), of(1.0036), Verdict.UNCLEAR),
        (above(1), of(1.035, 1.036), Verdict.UNCLEAR),
        (above(1), of(1.07, 1.0701), Verdict.HOLDS),
        (below(1), of(0.96), Verdict.UNCLEAR),
        (below(1), of(0.9499), Verdict.HOLDS),
        (above(0), of(0.009), Verdict.UNCLEAR),
        (above(0), of(0.011), Verdict.HOLDS),
        (above(1.5, departs=1), of(1.04), Verdict.UNCLEAR),
        (printed("1.5", departs=1), of(1.04, 1.041), Verdict.UNCLEAR),
        (printed("1.02", departs=1), of(1.02, 1.021), Verdict.HOLDS),
        # words for no difference have one range each, and the spread excuses nothing
        (similar(), of(1.49, 1.0), Verdict.FAILS),
        (similar(), of(1.34), Verdict.FAILS),
        (similar(), of(1.1, 0.9, 1.3), Verdict.UNCLEAR),
        (similar(), of(1.1, 1.11), Verdict.HOLDS),
        (equal(), of(1.04), Verdict.HOLDS),
        (equal(), of(0.94), Verdict.FAILS),
        (above(3), of(2.0, 2.01), Verdict.FAILS),
        (above(3, departs=1), of(2.0, 2.01), Verdict.DIRECTION),
    ],
)
def test_the_rule(claimed, ours, expected):
    assert verdict(claimed, ours) is expected


@given(samples, st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_a_claim_of_our_own_mean_holds(values, low, width):
    mean = Estimate.of(values).mean
    assert verdict(Range(mean - width, mean + width), Estimate.of(values)) is Verdict.HOLDS
    assert (verdict(above(low), Estimate.of(values)) is Verdict.FAILS) == (mean <= low)
