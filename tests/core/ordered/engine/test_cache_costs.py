"""The cache model: it gives back its points, never falls, and refuses what is none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.ordered.calibrate.sizes import ascending
from adapt.core.ordered.engine.cache_costs import ASSUMED_CACHES, CacheCosts, StateCost, TupleCost

SMALL = CacheCosts(
    (StateCost(64, 1024, 2.0, 3.0), StateCost(64, 4096, 6.0, 6.0), StateCost(256, 1024, 8.0, 27.0)),
    (TupleCost(64, 1.0, 2.0, 3.0, 4.0, 5.0), TupleCost(256, 4.0, 2.0, 9.0, 16.0, 17.0)),
)


@pytest.mark.parametrize("caches", [SMALL, ASSUMED_CACHES])
def test_measured_sizes_take_what_was_measured(caches: CacheCosts) -> None:
    for one in caches.states:
        assert caches.of_state(one.state_bytes, one.working_bytes) == pytest.approx((one.here_ns, one.moved_ns))
    for each in caches.tuples:
        assert caches.of_tuple(each.tuple_bytes) == each


def test_times_between_measured_sizes_are_interpolated() -> None:
    assert SMALL.of_state(64, 2048)[0] == pytest.approx(4.0)  # halfway by the logarithm of the working set
    assert SMALL.of_state(128, 1024) == pytest.approx((4.0, 9.0))  # the geometric mean of 2 and 8, of 3 and 27
    assert SMALL.of_tuple(160) == TupleCost(160, 2.5, 2.0, 6.0, 10.0, 11.0)
    assert SMALL.of_tuple(32).leave_ns == 2.5
    assert SMALL.of_tuple(0) == TupleCost(0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_larger_sizes_than_the_largest_grow_in_proportion_and_smaller_states_take_a_line() -> None:
    assert SMALL.of_state(512, 1 << 20) == pytest.approx((16.0, 54.0))
    assert SMALL.of_state(8, 512) == (2.0, 3.0)
    assert SMALL.of_tuple(448).feed_ns == pytest.approx(7.0)


@given(
    sizes=st.lists(st.integers(8, 1 << 20), min_size=2, max_size=2).map(sorted),
    sets=st.lists(st.integers(8, 1 << 30), min_size=2, max_size=2).map(sorted),
)
def test_no_time_falls_with_a_size(sizes: list[int], sets: list[int]) -> None:
    least, most = (ASSUMED_CACHES.of_state(size, working) for size, working in zip(sizes, sets, strict=True))
    assert least[0] <= most[0] * (1 + 1e-12)
    assert least[1] <= most[1] * (1 + 1e-12)
    assert least[0] <= least[1]
    one, other = map(ASSUMED_CACHES.of_tuple, sizes)
    assert one.leave_ns <= other.leave_ns
    assert one.feed_ns <= other.feed_ns


def test_medians_of_repeats_are_raised_where_they_fall() -> None:
    def repeat(*here_ns: float) -> tuple[list[StateCost], list[TupleCost]]:
        of = ((64, 1024), (64, 4096), (256, 1024), (256, 4096))
        states = [StateCost(*sizes, ns, ns + 1) for sizes, ns in zip(of, here_ns, strict=True)]
        return states, [TupleCost(64, *here_ns, 1.0), TupleCost(256, *[5.0] * 5)]

    found = ascending([repeat(4, 2, 3, 9), repeat(5, 3, 1, 9), repeat(6, 1, 2, 90)])
    assert [one.here_ns for one in found.states] == [5, 5, 5, 9]
    assert [one.moved_ns for one in found.states] == [6, 6, 6, 10]
    assert found.tuples == (TupleCost(64, 5, 2, 2, 9, 1.0), TupleCost(256, 5, 5, 5, 9, 5.0))
    for one, other in pairwise(found.tuples):
        assert one.send_ns <= other.send_ns


@pytest.mark.parametrize(
    ("states", "tuples", "told"),
    [
        ((), SMALL.tuples, "must both have entries, or neither"),
        (SMALL.states, (), "must both have entries, or neither"),
        ((StateCost(64, 32, 1.0, 1.0),), SMALL.tuples, "working sets must ascend from the state of 64 bytes"),
        ((StateCost(64, 64, 2.0, 1.0),), SMALL.tuples, "moved_ns must be at least here_ns"),
        ((StateCost(64, 64, 2.0, 2.0), StateCost(64, 128, 1.0, 2.0)), SMALL.tuples, "must not take less time"),
        ((StateCost(64, 64, 2.0, 2.0), StateCost(128, 128, 1.0, 2.0)), SMALL.tuples, "must not take less time"),
        ((StateCost(64, 64, -2.0, 2.0),), SMALL.tuples, "at least 0"),
        (SMALL.states, SMALL.tuples[::-1], "tuple_bytes must ascend"),
        (SMALL.states, (*SMALL.tuples, TupleCost(512, 0.0, 9.0, 9.0, 90.0, 90.0)), "must not take less time"),
    ],
)
def test_what_is_no_cache_model_is_refused(
    states: tuple[StateCost, ...], tuples: tuple[TupleCost, ...], told: str
) -> None:
    with pytest.raises(BadInput, match=told):
        CacheCosts(states, tuples)
