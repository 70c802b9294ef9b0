"""Even spreading: what heaviest first leaves uneven, exchanges even out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.partitioning.optimum.even_spread import evenly

weights = st.lists(st.integers(0, 30), max_size=12)
residuals = st.lists(st.integers(0, 12), min_size=1, max_size=5)


def on_channels(placement, keys, residual):
    return np.array(residual, float) + np.bincount(placement, keys, minlength=len(residual))


def test_exchanges_mend_what_heaviest_first_does():
    # Heaviest first gives 3 + 2 + 2 and 3 + 2; exchanging a 3 and a 2 makes both 6.
    keys = [3, 3, 2, 2, 2]
    assert on_channels(evenly(np.array(keys, float), np.zeros(2)), keys, [0, 0]).tolist() == [6, 6]


def test_the_residual_counts():
    assert evenly(np.array([4.0, 2.0, 1.0]), np.array([3.0, 0.0])).tolist() == [1, 0, 1]


@given(weights, residuals)
def test_no_move_to_or_from_the_extremes_would_make_it_more_even(keys, residual):
    placement = evenly(np.array(keys, float), np.array(residual, float))
    loads = on_channels(placement, keys, residual)
    squares = (loads**2).sum()
    for key, weight in enumerate(keys):
        for other in range(len(residual)):
            if {other, placement[key]} & {int(loads.argmin()), int(loads.argmax())}:
                moved = loads.copy()
                moved[placement[key]] -= weight
                moved[other] += weight
                assert (moved**2).sum() >= squares


@given(weights, residuals)
def test_a_channel_stays_empty_only_if_it_must(keys, residual):
    placement = evenly(np.array(keys, float), np.array(residual, float))
    empty = (on_channels(placement, keys, residual) == 0).sum()
    assert empty == max(residual.count(0) - sum(key > 0 for key in keys), 0)
