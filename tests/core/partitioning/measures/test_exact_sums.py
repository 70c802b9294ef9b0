import math
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.partitioning.measures.tally import ExactSums

NUMBERS = (
    st.floats(0, sys.float_info.max / 64, allow_subnormal=True)
    | st.integers(0, 2**53).map(float)
    | st.sampled_from([0.0, 5e-324, 2.0**-1022, 0.1, 2.0**31, 2.0**32 - 1, 1e22])
)
PARTS = st.lists(st.lists(st.tuples(st.integers(0, 3), NUMBERS), max_size=12), min_size=1, max_size=4)


def sums_of(part):
    return ExactSums.from_groups(
        np.array([g for g, _ in part], np.int32), np.array([v for _, v in part], np.float64), 4
    )


def added(parts):
    whole, *others = map(sums_of, parts)
    for other in others:
        whole = whole.plus(other)
    return whole


@given(PARTS)
def test_totals_are_the_sums_rounded_once(parts):
    """By `math.fsum`, which rounds once too."""
    expected = [math.fsum(value for part in parts for group, value in part if group == each) for each in range(4)]
    assert added(parts).totals().tolist() == expected
    assert added(parts).whole() == math.fsum(value for part in parts for _, value in part)


@given(PARTS, st.randoms(use_true_random=False))
def test_neither_order_nor_cut_matters(parts, random):
    rows = [row for part in parts for row in part]
    random.shuffle(rows)
    assert added([rows]).totals().tolist() == added(parts).totals().tolist() == added(parts[::-1]).totals().tolist()


def test_small_numbers_are_not_lost_beside_large_ones():
    ones, large = sums_of([(0, 1.0)] * 3), sums_of([(0, 2.0**60)])
    assert large.plus(ones).totals()[0] == 2.0**60  # rounded
    assert np.array_equal(large.plus(ones).plus(sums_of([(0, 125.0)])).totals(), [2.0**60 + 128, 0, 0, 0])


def test_many_full_limbs_carry():
    whole = sums_of([(2, 2.0**53 - 1)] * 1000)
    for _ in range(10):
        whole = whole.plus(whole)
    assert whole.totals()[2] == float((2**53 - 1) * 1000 * 2**10)


def test_the_sum_of_nothing_is_nothing():
    assert sums_of([]).plus(sums_of([(1, 0.0)])).totals().tolist() == [0, 0, 0, 0]


def test_what_is_too_much_for_a_float_is_infinite():
    most = sums_of([(0, sys.float_info.max)])
    assert most.totals()[0] == sys.float_info.max
    assert most.plus(most).totals()[0] == math.inf
