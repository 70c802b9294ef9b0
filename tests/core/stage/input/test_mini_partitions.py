import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stream import KeyType

KEYS = pa.array([f"key {number}" for number in range(20_000)])


@given(st.lists(st.none() | st.text(max_size=4), min_size=1), st.sampled_from(HashName))
def test_an_encoded_column_is_partitioned_as_a_plain_one(keys, hash):
    of = MiniPartitions(3, 5, hash)
    plain = pa.array(keys, pa.string())
    assert of.partitions_of(plain.dictionary_encode()).tolist() == of.partitions_of(plain).tolist()


@given(st.lists(st.none() | st.text(max_size=3), min_size=1, unique=True), st.integers(0, 10), st.integers(1, 9))
def test_keys_of_their_own_have_a_partition_each_and_share_it_with_none(keys, owned, more):
    column, own = pa.array(keys, pa.string()), keys[:owned]
    of = MiniPartitions(len(own) + more, 1, own=ExplicitMap(pa.array(own, pa.string()), np.arange(len(own))))
    partitions = of.partitions_of(column)
    assert partitions[: len(own)].tolist() == list(range(len(own)))
    assert ((partitions[len(own) :] >= len(own)) & (partitions[len(own) :] < len(own) + more)).all()
    assert of.partitions_of(column.dictionary_encode()).tolist() == partitions.tolist()


@pytest.mark.parametrize("scheme", [Scheme.UNIFORM, Scheme.CONSISTENT, Engine.SPARK, Scheme.JUMP])
@pytest.mark.parametrize("hash", HashName)
def test_keys_begin_at_their_channel_spread_over_all_its_partitions(scheme, hash):
    plan = Plan(scheme, 8, KeyType.STRING, hash=hash)
    of = MiniPartitions(8, 16, plan.hash, plan.partitioner())
    partitions = of.partitions_of(KEYS)
    assert (of.owners[partitions] == plan.partitioner().channels_of(KEYS)).all()
    counts = np.bincount(partitions, minlength=128)
    assert counts.min() > 80
    assert counts.max() < 260


def test_tracked_keys_stay_with_the_channel_of_the_plan():
    plan = Plan(Scheme.HYBRID, 4, KeyType.INT64, explicit={7: 3, None: 1})
    of = MiniPartitions(4, 8, plan.hash, plan.partitioner())
    assert (of.partitions_of(pa.array([7, None], pa.int64())) // 8).tolist() == [3, 1]


def test_without_a_plan_the_hash_decides():
    counts = np.bincount(MiniPartitions(8, 16).partitions_of(KEYS), minlength=128)
    assert 90 < counts.min() <= counts.max() < 240


@pytest.mark.parametrize(("workers", "per_worker", "told"), [(4, 0, "at least 1"), (4096, 4096, "at most 4,194,304")])
def test_partitions_that_cannot_be_are_refused(workers, per_worker, told):
    with pytest.raises(UsageError, match=told):
        MiniPartitions(workers, per_worker)
