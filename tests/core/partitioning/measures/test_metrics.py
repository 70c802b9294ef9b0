"""The numbers by which a partitioner is judged, by hand on a tiny stream."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.population import stand_in_keys
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from tests.tiers import examples


@dataclass(frozen=True)
class Listed:
    """A partitioner that knows the channel of each key by heart."""

    channels: int
    channel: dict[str, int]

    def channel_of(self, key):
        return self.channel[key]

    def channels_of(self, keys):
        return np.array([self.channel[key] for key in keys.to_pylist()], dtype=np.int32)


STREAM = frequencies_of(KeyCounts(pa.array(["a", "b", "c", "d"]), np.array([6, 3, 2, 1]), 12))
EVENLY = Listed(2, {"a": 0, "b": 1, "c": 1, "d": 1})


def test_metrics_by_hand():
    after = Listed(3, {"a": 0, "b": 1, "c": 2, "d": 2})
    metrics = evaluate(after, STREAM, Resources.parse("LCL", 1.5), EVENLY)
    assert metrics.as_data() == {
        "imbalance": 1.5,
        "best_possible": 1.5,
        "r_s": 2,
        "r_c": 2,
        "r_n": 2,
        "r_best": 2,
        "r_best_pinned": None,
        "b": pytest.approx(2 / 1.5),
        "b_best": pytest.approx(4 ** (1 / 3) / 1.5),
        "m": 0.75,
        "b(1+m)": pytest.approx(2 / 1.5 * 1.75),
        "keys_moved": 2,
        "state_moved": 3,
        "empty_channels": 0,
        "pinned_keys": 0,
    }


def test_migration_is_charged_by_the_state_function():
    after = Listed(2, {"a": 1, "b": 1, "c": 1, "d": 1})
    assert evaluate(after, STREAM, Resources.parse("CLL"), EVENLY).m == 0.5
    assert evaluate(after, STREAM, Resources.parse("QLL"), EVENLY).m == pytest.approx(36 / 25)


def test_an_empty_channel_leaves_ratios_undefined_but_not_imbalance():
    metrics = evaluate(Listed(2, dict.fromkeys("abcd", 1)), STREAM, Resources())
    assert (metrics.r_s, metrics.r_c, metrics.r_n, metrics.b) == (None,) * 4
    assert (metrics.imbalance, metrics.empty_channels) == (2, 1)


def test_without_a_previous_partitioner_migration_is_undefined():
    metrics = evaluate(EVENLY, STREAM, Resources())
    assert (metrics.m, metrics.b_times_1_plus_m, metrics.keys_moved, metrics.state_moved) == (None,) * 4
    assert metrics.b == pytest.approx(1 / 1.2)


def test_the_pair_floor_is_that_of_the_explicit_keys_and_the_ring():
    ring = ConsistentHash(2, replicas=10)
    everything = HybridPartitioner({"a": 0, "b": 0, "c": 0, "d": 0, "absent": 1}, ring)
    metrics = evaluate(everything, STREAM, Resources())
    assert (metrics.r_n, metrics.r_best_pinned, metrics.pinned_keys) == (None, 1, 5)
    nothing = evaluate(HybridPartitioner({}, ring), STREAM, Resources())
    assert (nothing.r_best_pinned, nothing.pinned_keys) == (nothing.r_n, 0)


@dataclass(frozen=True)
class Dealt:
    """A partitioner that deals the keys of a column out to the channels, beginning at one of them."""

    channels: int
    first: int

    def channels_of(self, keys):
        return ((np.arange(len(keys)) + self.first) % self.channels).astype(np.int32)

    def channel_of(self, key):
        return self.first


LOSSY = Frequencies(
    pa.array(["a"]), np.array([60]), np.array([65]), total=120.0, rows=120, epsilon=0.05, complete_above=8, distinct=9
)
"""One key of 60, and 8 unlisted ones of 7.5."""


@examples(10)
@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=5),
    st.integers(2, 4),
    st.text("CLQ", min_size=3, max_size=3),
    st.integers(0, 3),
)
def test_no_placement_has_a_lower_b_than_the_floor(counts, channels, letters, tracked):
    keys = [f"k{at}" for at in range(len(counts))]
    stream = frequencies_of(KeyCounts(pa.array(keys), np.array(counts), sum(counts)))
    resources = Resources.parse(letters, 1.3)
    places = product(range(channels), repeat=len(keys))
    whole = [evaluate(Listed(channels, dict(zip(keys, place, strict=True))), stream, resources) for place in places]
    assert all(each.b_best is None or each.b is None or each.b >= each.b_best * (1 - 1e-12) for each in whole)
    ring = ConsistentHash(channels, 10)
    heaviest = stream.keys.to_pylist()[:tracked]
    for place in product(range(channels), repeat=len(heaviest)):
        placed = HybridPartitioner(dict(zip(heaviest, place, strict=True)), ring)
        metrics = evaluate(placed, stream, resources)
        assert metrics.b is None or metrics.b_best is None or metrics.b >= metrics.b_best * (1 - 1e-12)


def test_stand_ins_load_channels_and_migrate_as_keys_do():
    metrics = evaluate(Dealt(4, 2), LOSSY, Resources.parse("CLL"), Dealt(4, 1))
    assert metrics.imbalance == 75 / 30
    assert metrics.best_possible == 2
    assert metrics.r_n == 75 / 15
    assert metrics.r_best == 3
    assert metrics.r_s == 3 / 2
    assert (metrics.keys_moved, metrics.state_moved, metrics.m) == (9, 9, 4)


def test_a_channel_that_no_light_key_meets_is_empty():
    metrics = evaluate(Dealt(12, 0), LOSSY, Resources())
    assert (metrics.empty_channels, metrics.r_n, metrics.r_best) == (3, None, 11)


def test_light_keys_alone_can_be_balanced_and_are_not():
    light = replace(LOSSY, keys=LOSSY.keys[:0], count_low=LOSSY.count_low[:0], count_high=LOSSY.count_high[:0])
    metrics = evaluate(ConsistentHash(4), replace(light, distinct=2000), Resources())
    assert (metrics.best_possible, metrics.r_best) == (1, pytest.approx(1, abs=0.01))
    assert 1.02 < metrics.r_n < 1.5


def test_the_ring_gives_the_pair_floor_its_noise():
    ring = ConsistentHash(4)
    many = replace(LOSSY, distinct=20)
    metrics = evaluate(HybridPartitioner({"a": 0}, ring), many, Resources())
    light = np.bincount(ring.channels_of(stand_in_keys(pa.string(), 19)), minlength=4) * 60 / 19
    best = min((60 + light[at]) / np.delete(light, at).min() for at in range(4))
    assert metrics.r_best_pinned == pytest.approx(best)
    assert metrics.r_n == pytest.approx((60 + light[0]) / light[1:].min())
