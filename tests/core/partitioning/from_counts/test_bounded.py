from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.errors import UsageError
from adapt.core.partitioning.from_counts.bounded import USUAL, bounded
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import ResourceFunction
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.consistent import ConsistentHash

weights = st.lists(st.integers(0, 50), min_size=1, max_size=60)
caps = st.sampled_from([1.01, 1.05, USUAL, 2.0])


def counted(counts):
    keys = pa.array([f"key{at:05}" for at in range(len(counts))])
    return frequencies_of(KeyCounts(keys, np.array(counts, np.int64), int(sum(counts))))


ZIPF = counted(10**6 // np.arange(1, 5001))


def loads_of(partitioner, frequencies):
    placed = partitioner.channels_of(frequencies.keys)
    return np.bincount(placed, weights=frequencies.count_low, minlength=partitioner.channels)


@given(weights, st.integers(1, 7), st.integers(1, 9), caps)
def test_each_key_takes_the_first_channel_on_its_walk_on_which_it_fits(counts, channels, replicas, capacity):
    frequencies, ring = counted(counts), ConsistentHash(channels, replicas)
    cap = capacity * sum(counts) / channels
    loads, expected = [0] * channels, {}
    homes = ring.replicas_of(frequencies.keys).tolist()
    for key, count, home in zip(frequencies.keys.to_pylist(), frequencies.count_low.tolist(), homes, strict=True):
        walk = np.roll(ring.owners, -home).tolist()
        fitting = [channel for channel in walk if loads[channel] + count <= cap * (1 + 1e-12)]
        emptiest = [channel for channel in walk if loads[channel] == min(loads)]
        channel = (fitting or emptiest)[0]
        loads[channel] += count
        if channel != walk[0]:
            expected[key] = channel
    assert bounded(frequencies, ring, capacity=capacity).explicit == expected


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=30),
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    caps,
    st.data(),
)
def test_by_capacity_each_key_walks_to_where_it_fits_after_the_pinned_ones(counts, each, capacity, data):
    frequencies, ring = counted(counts), ConsistentHash(len(each), 7)
    names = frequencies.keys.to_pylist()
    pinned = data.draw(st.dictionaries(st.sampled_from(names), st.integers(0, ring.channels - 1)))
    own = [ring.channels * Fraction(one, sum(each)) for one in each]
    loads, expected = [0] * ring.channels, dict(pinned)
    for key, count in zip(names, frequencies.count_low.tolist(), strict=True):
        if key in pinned:
            loads[pinned[key]] += count
    homes = ring.replicas_of(frequencies.keys).tolist()
    for key, count, home in zip(names, frequencies.count_low.tolist(), homes, strict=True):
        if key in pinned:
            continue
        walk = np.roll(ring.owners, -home).tolist()
        average = sum(counts) / ring.channels
        fitting = [at for at in walk if loads[at] + count <= capacity * average * float(own[at]) * (1 + 1e-12)]
        used = [(loads[at] + count) / own[at] for at in range(ring.channels)]
        channel = (fitting or [at for at in walk if used[at] == min(used)])[0]
        loads[channel] += count
        if channel != walk[0]:
            expected[key] = channel
    assert (
        bounded(frequencies, ring, capacity=capacity, constraints=Constraints(tuple(each), pinned)).explicit == expected
    )


@given(weights, st.lists(st.integers(1, 4), min_size=1, max_size=6), caps)
def test_no_channel_is_above_its_part_of_the_cap_unless_a_key_is_too_heavy_for_the_smallest(counts, each, capacity):
    frequencies, own = counted(counts), np.array(each) / np.mean(each)
    average = sum(counts) / len(each)
    loads = loads_of(
        bounded(frequencies, ConsistentHash(len(each), 20), capacity=capacity, constraints=Constraints(tuple(each))),
        frequencies,
    )
    if max(counts) <= (capacity - 1) * average * own.min():
        assert (loads <= capacity * average * own * (1 + 1e-9)).all()


@given(weights, st.integers(1, 7), caps)
def test_no_channel_is_above_the_cap_unless_a_key_is_too_heavy_for_it(counts, channels, capacity):
    frequencies = counted(counts)
    average = sum(counts) / channels
    loads = loads_of(bounded(frequencies, ConsistentHash(channels, 20), capacity=capacity), frequencies)
    assert loads.max() <= max(capacity * average, average + max(counts)) * (1 + 1e-9)
    if max(counts) <= (capacity - 1) * average:
        assert loads.max() <= capacity * average * (1 + 1e-9)


@pytest.mark.parametrize("capacity", [USUAL, 1.05])
@pytest.mark.parametrize("channels", [2, 5, 10])
def test_the_cap_holds_on_a_zipf_stream(channels, capacity):
    heaviest = ZIPF.count_low[0]
    loads = loads_of(bounded(ZIPF, ConsistentHash(channels), capacity=capacity), ZIPF)
    assert loads.max() <= max(capacity * loads.mean(), heaviest) * (1 + 1e-9)


def test_only_keys_away_from_home_are_in_the_map():
    ring = ConsistentHash(10)
    built = bounded(ZIPF, ring)
    assert 0 < len(built.explicit) < len(ZIPF.keys)
    assert (ring.channels_of(built.explicit.column) != built.explicit.channels).all()


def test_without_pressure_it_is_the_ring():
    assert len(bounded(ZIPF, ConsistentHash(10), capacity=100.0).explicit) == 0


def test_a_tighter_cap_balances_better():
    fullest = [loads_of(bounded(ZIPF, ConsistentHash(5), capacity=c), ZIPF).max() for c in (1.05, 1.25, 100.0)]
    assert fullest == sorted(fullest)


def test_unlisted_keys_fill_their_channels_first():
    listed = replace(
        ZIPF, keys=ZIPF.keys[:50], count_low=ZIPF.count_low[:50], count_high=ZIPF.count_low[:50], epsilon=1e-4,
        complete_above=float(ZIPF.count_low[50]),
    )  # fmt: skip
    built = bounded(listed, ConsistentHash(5), capacity=1.25)
    unlisted = Population.from_counts(listed).rest_on(ConsistentHash(5), ResourceFunction.LINEAR)
    assert (loads_of(built, listed) + unlisted).max() <= 1.25 * ZIPF.total / 5 * (1 + 1e-9)


def test_a_constant_load_bounds_the_number_of_keys():
    placed = bounded(ZIPF, ConsistentHash(8), ResourceFunction.CONSTANT, 1.01).channels_of(ZIPF.keys)
    assert np.bincount(placed).max() <= 1.01 * 5000 / 8


@pytest.mark.parametrize("capacity", [1.0, 0.5, float("nan")])
def test_a_cap_without_room_is_refused(capacity):
    with pytest.raises(UsageError, match="must be above the mean load"):
        bounded(ZIPF, ConsistentHash(8), capacity=capacity)
