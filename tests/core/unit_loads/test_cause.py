"""One hot key and the luck of the hash are told apart by loads alone, and the interval holds the hottest key."""

import numpy as np
import pytest

from adapt.core.unit_loads.cause import Cause, cause_of, equal_keys_as_uneven, most_equal_keys
from tests.claims.unit_cases import Case, Score, generated_cases

FAIR = np.full(8, 1 / 8)


def counted(shares, seed=0, windows=12, rows=20_000):
    """Rows of keys of steady shares, on eight units."""
    random = np.random.default_rng(seed)
    shares = np.asarray(shares, float) / np.sum(shares)
    counts = random.poisson(shares[:, None] * np.full(windows, rows))
    return Case.of_keys("drawn", None, counts.astype(float), random.integers(0, 8, len(shares)), 8)


def test_one_key_above_many_equal_ones_is_hot():
    case = counted([2000, *np.ones(5000)])
    judged = case.judged()
    assert case.truth == judged.cause == Cause.HOT
    assert judged.hot > 0.9
    assert case.holds(judged)


@pytest.mark.parametrize("seed", range(3))
def test_many_equal_keys_are_luck(seed):
    case = counted(np.ones(20_000), seed)
    judged = case.judged()
    assert case.truth == judged.cause == Cause.LUCK
    assert case.holds(judged)


def test_a_key_that_changes_on_its_own_is_seen_over_time():
    """The same loads in all, once as one window, and once with a busiest unit that alone changes."""
    random = np.random.default_rng(3)
    shares = np.ones((401, 12))
    shares[0], home = 10 * random.lognormal(0, 0.7, 12), random.integers(0, 8, 401)
    case = Case.of_keys("drawn", None, random.poisson(shares * 400).astype(float), home, 8)
    one, twelve = (cause_of(loads, FAIR) for loads in (case.loads.sum(axis=1, keepdims=True), case.loads))
    assert case.truth == "hot key"
    assert twelve.hot > 0.9 > one.hot
    assert case.holds(one)
    assert case.holds(twelve)


def test_generated_populations():
    """Keys that are drawn and change in other ways than those to which the loads are compared."""
    score = Score.of(generated_cases(80, 8, 7))
    assert score.right >= 0.95
    assert score.share(Cause.UNKNOWN) <= 0.35
    assert score.coverage >= 0.9


def test_the_answer_depends_on_neither_scale_nor_order():
    case = counted([200, *np.ones(500)], 3)
    order = np.random.default_rng(1).permutation(8)
    assert cause_of(case.loads, FAIR) == cause_of(case.loads * 1024, FAIR) == cause_of(case.loads[order], FAIR)


def test_equal_keys_as_uneven_by_binomial_chance():
    """Of three keys on two units, all lie together in a quarter of placements; of two, in half."""
    assert equal_keys_as_uneven(1.0, np.full(2, 0.5), 3) == pytest.approx(0.25, abs=0.02)
    assert equal_keys_as_uneven(1.0, np.full(2, 0.5), 2) == pytest.approx(0.5, abs=0.02)
    assert most_equal_keys(1.0, np.full(2, 0.5)) == 5  # 2 / 2^5 is above 5 %, 2 / 2^6 below
