from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.from_counts.greedy import greedy
from adapt.core.partitioning.loads.load import ResourceFunction
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.consistent import ConsistentHash

weights = st.lists(st.integers(0, 50), min_size=1, max_size=40)


def counted(counts):
    keys = pa.array([f"key{at:03}" for at in range(len(counts))])
    return frequencies_of(KeyCounts(keys, np.array(counts, np.int64), sum(counts)))


def fullest(frequencies, channels, weigh=ResourceFunction.LINEAR):
    placed = greedy(frequencies, ConsistentHash(channels, 5), weigh).channels_of(frequencies.keys)
    return np.bincount(placed, weights=weigh.costs(frequencies.count_low), minlength=channels).max()


def test_the_light_keys_fill_up_beside_the_heavy_one():
    built = greedy(counted([50, 30, 20]), ConsistentHash(2, 5))
    assert built.explicit == {"key000": 0, "key001": 1, "key002": 1}


@given(weights, st.integers(1, 7))
def test_each_key_goes_to_the_least_loaded_channel_of_its_turn(counts, channels):
    frequencies = counted(counts)
    loads, expected = [0] * channels, {}
    for key, count in zip(frequencies.keys.to_pylist(), frequencies.count_low.tolist(), strict=True):
        expected[key] = loads.index(min(loads))
        loads[expected[key]] += count
    assert greedy(frequencies, ConsistentHash(channels, 5)).explicit == expected


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 3))
def test_the_fullest_channel_is_within_graham_s_bound_of_the_least_possible(counts, channels):
    best = min(
        np.bincount(placed, weights=counts, minlength=channels).max()
        for placed in product(range(channels), repeat=len(counts))
    )
    assert fullest(counted(counts), channels) <= best * (4 / 3 - 1 / (3 * channels)) * (1 + 1e-12)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=20),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.data(),
)
def test_by_capacity_each_key_goes_where_the_utilisation_with_it_is_least_after_the_pinned_ones(counts, each, data):
    frequencies, channels = counted(counts), len(each)
    names = frequencies.keys.to_pylist()
    pinned = data.draw(st.dictionaries(st.sampled_from(names), st.integers(0, channels - 1)))
    loads, expected = [0] * channels, dict(pinned)
    for key, count in zip(names, frequencies.count_low.tolist(), strict=True):
        if key in pinned:
            loads[pinned[key]] += count
    for key, count in zip(names, frequencies.count_low.tolist(), strict=True):
        if key not in pinned:
            used = [Fraction(load + count, own) for load, own in zip(loads, each, strict=True)]
            if len(set(each)) == 1:
                used = loads
            expected[key] = used.index(min(used))
            loads[expected[key]] += count
    built = greedy(frequencies, ConsistentHash(channels, 5), constraints=Constraints(tuple(each), pinned))
    assert built.explicit == expected


@given(st.lists(st.integers(1, 30), min_size=1, max_size=7), st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_the_most_utilised_channel_is_within_the_bound_for_uniform_machines(counts, each):
    frequencies, channels = counted(counts), len(each)
    best = min(
        (np.bincount(placed, weights=counts, minlength=channels) / each).max()
        for placed in product(range(channels), repeat=len(counts))
    )
    built = greedy(frequencies, ConsistentHash(channels, 5), constraints=Constraints(tuple(each)))
    used = np.bincount(built.channels_of(frequencies.keys), frequencies.count_low, channels) / each
    assert used.max() <= best * (2 - 2 / (channels + 1)) * (1 + 1e-12)


def test_a_constant_load_spreads_keys_whatever_their_counts():
    frequencies = counted([1000, *[1] * 19])
    assert fullest(frequencies, 4, ResourceFunction.CONSTANT) == 5


def test_unlisted_keys_are_left_to_the_ring():
    ring = ConsistentHash(5, 20)
    built = greedy(counted([5, 4, 3]), ring)
    others = pa.array([f"other{at}" for at in range(200)])
    assert (built.channels_of(others) == ring.channels_of(others)).all()
