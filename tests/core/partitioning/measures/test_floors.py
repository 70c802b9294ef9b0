"""Floors are true lower bounds: every placement of small instances is tried."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.partitioning.measures.floors import best_possible, r_best, r_best_pinned

several = st.lists(st.integers(1, 30), min_size=1, max_size=8)
weights = st.lists(st.integers(1, 30), min_size=1, max_size=5)
residuals = st.lists(st.integers(0, 12), min_size=1, max_size=4)
ROUNDING = 1 - 1e-12


def falling(values):
    return np.array(sorted(values, reverse=True), dtype=np.float64)


def all_loads(keys, residual):
    """The loads of every way to put the keys on the channels."""
    for places in product(range(len(residual)), repeat=len(keys)):
        loads = list(map(float, residual))
        for key, place in zip(keys, places, strict=True):
            loads[place] += key
        yield loads


def least_ratio(keys, residual, capacities=None):
    """The least max/min over every placement; None if one channel is empty in all of them."""
    each = capacities or [1] * len(residual)
    utilised = ([load / own for load, own in zip(loads, each, strict=True)] for loads in all_loads(keys, residual))
    return min((max(used) / min(used) for used in utilised if min(used) > 0), default=None)


@st.composite
def unequal(draw):
    """Residuals, and a capacity for each channel."""
    residual = draw(residuals)
    capacity = st.integers(1, 6) | st.floats(0.1, 10)
    return residual, draw(st.lists(capacity, min_size=len(residual), max_size=len(residual)))


@given(weights, st.integers(1, 4))
def test_no_placement_has_less_imbalance_than_the_floor(keys, channels):
    floor = best_possible(max(keys), sum(keys), channels)
    mean = sum(keys) / channels
    assert floor * ROUNDING <= min(max(loads) / mean for loads in all_loads(keys, [0] * channels))


@given(several, st.integers(1, 3), st.integers(0, 40))
def test_the_floor_of_few_keys_is_that_of_the_best_placement(keys, channels, unlisted):
    """Load that is not listed may be divided, so it only lifts the mean."""
    total = sum(keys) + unlisted
    best = min(max(loads) for loads in all_loads(keys, [0] * channels))
    floor = best_possible(falling(keys), total, channels)
    assert floor == pytest.approx(max(best * channels / total, 1.0 if unlisted else 0.0), rel=1e-12)


@pytest.mark.parametrize(("keys", "channels"), [(7, 4), (9, 4), (3, 8), (2001, 40), (100_001, 64), (12, 12), (1, 1)])
@pytest.mark.parametrize("load", [1, 0.3])
def test_equal_keys_share_channels_as_evenly_as_whole_keys_can(keys, channels, load):
    floor = best_possible(np.full(keys, load), keys * load, channels)
    assert floor == pytest.approx(-(-keys // channels) * channels / keys, rel=1e-9)


def test_whole_loads_have_a_whole_peak():
    assert best_possible(falling([3] + [1] * 998), 1001, 4) == pytest.approx(251 * 4 / 1001)


def test_doubling_every_load_leaves_the_floor():
    loads = np.ones(1000)
    assert best_possible(2 * loads, 2000.0, 3) == best_possible(loads, 1000.0, 3) == pytest.approx(334 / (1000 / 3))


@pytest.mark.parametrize("load", [2.0**53, 2.0**57, 1e30, 1e300])
def test_loads_that_integers_cannot_hold_have_a_floor(load):
    assert best_possible([load] * 7, 7 * load, 4) == pytest.approx(8 / 7)


@given(weights, st.integers(1, 4))
def test_no_placement_has_a_lower_ratio_than_r_floor(keys, channels):
    floor, least = r_best(falling(keys), sum(keys), channels), least_ratio(keys, [0] * channels)
    assert least is None or (floor is not None and floor >= 1 and floor * ROUNDING <= least)


@given(weights, residuals)
def test_no_placement_of_the_tracked_keys_has_a_lower_ratio_than_r_floor_pair(keys, residual):
    floor, least = r_best_pinned(falling(keys), np.array(residual, dtype=np.float64)), least_ratio(keys, residual)
    assert least is None or (floor is not None and floor >= 1 and floor * ROUNDING <= least)


@given(weights, residuals)
def test_minding_the_ring_never_lowers_the_floor(keys, residual):
    rest = [load for load in residual if load > 0]
    pair = r_best_pinned(falling(keys), np.array(residual, dtype=np.float64))
    free = r_best(falling(keys + rest), sum(keys) + sum(rest), len(residual))
    assert pair is None or (free is not None and free * ROUNDING <= pair)


class TestCapacities:
    @given(weights, unequal())
    def test_no_placement_has_less_imbalance_than_the_floor(self, keys, channels):
        _, capacities = channels
        n = len(capacities)
        floor = best_possible(falling(keys), sum(keys), n, np.array(capacities, np.float64))
        mean = sum(keys) / sum(capacities)
        least = min(
            max(load / own for load, own in zip(loads, capacities, strict=True)) / mean
            for loads in all_loads(keys, [0] * n)
        )
        assert floor == pytest.approx(least, rel=1e-9)

    @given(weights, unequal())
    def test_no_placement_has_a_lower_ratio_than_r_floor(self, keys, channels):
        _, capacities = channels
        n = len(capacities)
        floor = r_best(falling(keys), sum(keys), n, np.array(capacities, np.float64))
        least = least_ratio(keys, [0] * n, capacities)
        assert least is None or (floor is not None and floor >= 1 and floor * ROUNDING <= least)

    @given(weights | st.just([]), unequal())
    def test_no_placement_of_the_tracked_keys_has_a_lower_ratio_than_r_floor_pair(self, keys, channels):
        residual, capacities = channels
        floor = r_best_pinned(falling(keys), np.array(residual, np.float64), np.array(capacities, np.float64))
        least = least_ratio(keys, residual, capacities)
        assert least is None or (floor is not None and floor >= 1 and floor * ROUNDING <= least)

    @given(weights, residuals, st.floats(0.1, 10))
    def test_equal_capacities_are_as_good_as_none(self, keys, residual, capacity):
        loads, rest, n, total = falling(keys), np.array(residual, np.float64), len(residual), sum(keys)
        today = (best_possible(loads, total, n), r_best(loads, total, n), r_best_pinned(loads, rest))
        for each, rounding in ((np.ones(n), 0), (np.full(n, capacity), 1e-9)):
            floors = (
                best_possible(loads, total, n, each),
                r_best(loads, total, n, each),
                r_best_pinned(loads, rest, each),
            )
            for floor, before in zip(floors, today, strict=True):
                assert floor == (before if before is None else pytest.approx(before, rel=rounding, abs=0))

    def test_the_heaviest_key_is_at_home_on_the_largest_channel(self):
        assert best_possible(falling([6, 3, 3]), 12, 3, np.array([2.0, 1.0, 1.0])) == 1
        assert r_best(falling([6, 3, 3]), 12, 3, np.array([2.0, 1.0, 1.0])) == 1
        assert r_best_pinned(falling([6, 2]), np.array([0.0, 1.0, 3.0]), np.array([2.0, 1.0, 1.0])) == 1

    def test_two_heavy_keys_find_one_large_channel_only(self):
        """Of utilisation: 6 on the small channel, or 12 / 4 on the large one, where all of it could have 12 / 6."""
        assert best_possible(falling([6, 6]), 12, 3, np.array([4.0, 1.0, 1.0])) == 3 / 2


def test_a_key_of_half_the_stream_cannot_be_balanced_over_four_channels():
    keys = falling([6, 1, 1, 1, 1, 1, 1])
    assert best_possible(6, 12, 4) == 2
    assert r_best(keys, 12, 4) == 3


def test_two_sticking_keys_leave_the_rest_to_the_others():
    # 6 and 4 stick out, so 2 is all that is left for two channels.
    assert r_best(falling([6, 4, 1, 1]), 12, 4) == 6


def test_fewer_keys_than_channels_leave_a_channel_empty():
    assert r_best(falling([3, 2]), 5, 3) is None
    assert r_best_pinned(falling([3]), np.zeros(2)) is None


def test_the_heaviest_key_takes_its_best_channel():
    # On the emptier channel the key makes 7 against 3; on the other, 9 against 1.
    assert r_best_pinned(falling([6]), np.array([3.0, 1.0])) == pytest.approx(7 / 3)


def test_without_tracked_keys_the_floor_is_what_the_ring_gives():
    assert r_best_pinned(np.zeros(0), np.array([3.0, 2.0])) == 1.5


def test_one_channel_is_balanced():
    assert (best_possible(5, 9, 1), r_best(falling([5, 4]), 9, 1)) == (1, 1)
    assert r_best_pinned(falling([5]), np.array([4.0])) == 1


def test_an_empty_stream_has_no_floor():
    assert (best_possible(0, 0, 3), r_best(np.zeros(0), 0, 3)) == (None, None)
