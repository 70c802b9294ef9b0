import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.partitioning.splitting.split import measure_split, merge_cost, split, split_loads
from tests.core.partitioning.splitting.streams import messages_of

COLUMN = pa.array([f"key{int(at)}" for at in np.random.default_rng(0).zipf(1.5, 20_000) % 500])
MESSAGES = messages_of(COLUMN, periods=np.arange(20_000) // 5000)


def test_whole_keys_are_judged_as_their_partitioner_is():
    resources = Resources.parse("LCQ")
    done = split(MESSAGES, Splitting.ONE_CHOICE, 7)
    judged = evaluate(UniformPartitioner(7), frequencies_of(count_keys(COLUMN)), resources).as_data()
    assert measure_split(done, MESSAGES, resources).as_data() == pytest.approx(judged)


def test_a_split_key_counts_on_each_of_its_channels():
    done = split(messages_of(pa.array(["a"] * 4)), Splitting.W_CHOICES, 2)
    assert split_loads(done, Resources.parse("CLQ")).tolist() == [[1, 1], [2, 2], [4, 4]]


def test_splitting_passes_the_floor_of_whole_keys_and_pays_with_merges():
    ways = (Splitting.ONE_CHOICE, Splitting.PKG, Splitting.W_CHOICES)
    done = [split(MESSAGES, way, 40) for way in ways]
    one, two, every = (measure_split(way, MESSAGES, Resources()) for way in done)
    assert every.imbalance < two.imbalance < one.best_possible <= one.imbalance
    costs = [merge_cost(way) for way in done]
    assert costs[2].merge_tuples > costs[1].merge_tuples > costs[0].merge_tuples == 0
    assert costs[2].channels_per_key > costs[1].channels_per_key > costs[0].channels_per_key == 1


def test_without_messages_nothing_is_defined():
    nothing = messages_of(pa.array([], pa.string()))
    done = split(nothing, Splitting.PKG, 3)
    data = measure_split(done, nothing, Resources()).as_data()
    assert [data[name] for name in ("imbalance", "best_possible", "r_n", "r_best", "b")] == [None] * 5
    assert (data["empty_channels"], merge_cost(done).channels_per_key) == (3, None)
