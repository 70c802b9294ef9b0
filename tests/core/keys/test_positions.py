from bisect import bisect_left

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.keys.partitioner import SortedPositions

# Words that meet often: ends of the range, equal high words, leading bits alike.
WORDS = st.sampled_from([0, 1, 2, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]) | st.integers(0, 2**64 - 1)
POSITIONS = st.tuples(WORDS, WORDS)


def words(pairs):
    columns = np.array(pairs, np.uint64).reshape(-1, 2)
    return columns[:, 0].copy(), columns[:, 1].copy()


@given(st.lists(POSITIONS, min_size=1, max_size=50).map(sorted), st.lists(POSITIONS, max_size=50))
def test_the_first_at_or_after_is_what_bisection_over_whole_numbers_finds(positions, sought):
    numbers = [high * 2**64 + low for high, low in positions]
    expected = [bisect_left(numbers, high * 2**64 + low) % len(numbers) for high, low in sought]
    assert SortedPositions.from_sorted(*words(positions)).first_at_or_after(*words(sought)).tolist() == expected


@given(st.lists(POSITIONS, min_size=1, max_size=50).map(sorted))
def test_a_position_is_at_itself_and_of_equal_ones_the_first_counts(positions):
    found = SortedPositions.from_sorted(*words(positions)).first_at_or_after(*words(positions))
    assert found.tolist() == [positions.index(position) for position in positions]


def test_evenly_spread_positions_are_one_or_two_buckets_each():
    for count in (1, 2, 3, 1000, 1024):
        high = np.linspace(0, 2**63, count).astype(np.uint64)
        assert count < len(SortedPositions.from_sorted(high, high).starts) <= max(2, 2 * count)
