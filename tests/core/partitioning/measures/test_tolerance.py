import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.plan_settings import ToleranceSettings
from adapt.core.partitioning.measures.tolerance import (
    suggested_tolerances,
    tolerance_for_capacity,
    tolerance_for_utilization,
)


def test_the_paper_s_two_examples():
    assert tolerance_for_utilization(0.9) == pytest.approx(1.11, abs=0.002)
    assert tolerance_for_capacity(10, 3, 4) == pytest.approx(9 / 7)


@given(st.integers(2, 50), st.floats(0.1, 100), st.floats(1, 3))
def test_at_the_tolerance_the_fullest_channel_is_just_full(channels, capacity, room):
    total = channels * capacity / room
    alpha = tolerance_for_capacity(total, capacity, channels)
    if capacity >= total:
        assert alpha == math.inf
    else:
        others = (total - capacity) / (channels - 1)
        assert alpha == pytest.approx(capacity / others)


def test_both_can_be_suggested_at_once():
    table = suggested_tolerances(4, ToleranceSettings(0.8, 10, 3))
    assert table.values("tolerance") == pytest.approx([1.25, 9 / 7])
    assert table.values("utilization") == pytest.approx([0.8, 7 / 9])


def test_where_one_channel_could_hold_it_all_any_tolerance_will_do():
    assert suggested_tolerances(4, ToleranceSettings(total=3, capacity=3)).values("tolerance") == [None]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "give utilization"),
        ({"utilization": 0.0}, "must be above 0"),
        ({"utilization": math.nan}, "must be above 0"),
        ({"total": 10.0}, "go together"),
        ({"total": 10.0, "capacity": 0.0}, "above 0"),
        ({"total": 10.0, "capacity": 2.0}, "at least 5 workers, or a capacity of 2.5"),
    ],
)
def test_what_cannot_be_is_refused(given, why):
    with pytest.raises(UsageError, match=why):
        suggested_tolerances(4, ToleranceSettings(**given))
