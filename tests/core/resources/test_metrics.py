"""The numbers by which a partitioner is judged, by hand on a tiny stream."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.frequencies.exact import KeyCounts, frequencies_of
from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.partitioners.consistent import ConsistentHash
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.resources.functions import Resources
from adapt.core.resources.metrics import evaluate


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
        "imbalance_floor": 1.5,
        "r_s": 2,
        "r_c": 2,
        "r_n": 2,
        "r_floor": 2,
        "r_floor_pair": None,
        "b": pytest.approx(2 / 1.5),
        "m": 0.75,
        "b(1+m)": pytest.approx(2 / 1.5 * 1.75),
        "migrated_keys": 2,
        "migrated_state": 3,
        "empty_channels": 0,
        "explicit_keys": 0,
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
    assert (metrics.m, metrics.b_times_1_plus_m, metrics.migrated_keys, metrics.migrated_state) == (None,) * 4
    assert metrics.b == pytest.approx(1 / 1.2)


def test_the_pair_floor_is_that_of_the_explicit_keys_and_the_ring():
    ring = ConsistentHash(2, replicas=10)
    everything = HybridPartitioner({"a": 0, "b": 0, "c": 0, "d": 0, "absent": 1}, ring)
    metrics = evaluate(everything, STREAM, Resources())
    assert (metrics.r_n, metrics.r_floor_pair, metrics.explicit_keys) == (None, 1, 5)
    nothing = evaluate(HybridPartitioner({}, ring), STREAM, Resources())
    assert (nothing.r_floor_pair, nothing.explicit_keys) == (nothing.r_n, 0)


def test_floors_hold_for_what_a_lossy_counter_lists():
    lossy = Frequencies(
        pa.array(["a"]), np.array([60]), np.array([65]), total=120.0, rows=120, epsilon=0.05, distinct=9
    )
    metrics = evaluate(Listed(4, {"a": 2}), lossy, Resources())
    assert metrics.imbalance == 2.5
    assert metrics.imbalance_floor == 2
    assert metrics.r_n == 75 / 15
    assert metrics.r_floor == 3
