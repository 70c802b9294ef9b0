import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

RING = ConsistentHash(8, replicas=50)


def test_a_tracked_key_goes_where_it_is_mapped_and_the_rest_where_the_ring_says():
    home = RING.channel_of("a")
    built = HybridPartitioner({"a": (home + 1) % 8}, RING)
    assert built.channels_of(pa.array(["a", "b"])).tolist() == [(home + 1) % 8, RING.channel_of("b")]


@given(
    st.dictionaries(st.none() | st.text(max_size=2), st.integers(0, 7)),
    st.lists(st.none() | st.text(max_size=2), max_size=30),
)
def test_a_look_up_is_algorithm_1(explicit, keys):
    """Explicit map first, consistent hash otherwise, word for word."""
    built = HybridPartitioner(explicit, RING)
    expected = [explicit[key] if key in explicit else RING.channel_of(key) for key in keys]
    assert built.channels_of(pa.array(keys, pa.string())).tolist() == expected
    assert [built.channel_of(key) for key in keys] == expected


def test_without_tracked_keys_it_is_its_ring():
    keys = pa.array(range(1000))
    assert (HybridPartitioner({}, RING).channels_of(keys) == RING.channels_of(keys)).all()


def test_it_is_made_of_columns_as_well():
    explicit = ExplicitMap(pa.array([3, 1, None]), np.array([0, 1, 2], np.int32))
    assert HybridPartitioner(explicit, RING).channels_of(pa.array([None, 1, 3])).tolist() == [2, 1, 0]


def test_the_explicit_map_is_readable():
    explicit = HybridPartitioner({"a": 1, None: 2}, RING).explicit
    assert explicit == {"a": 1, None: 2}
    assert explicit.keys() - {"a"} == {None}


@pytest.mark.parametrize("channel", [8, 9])
def test_a_channel_that_the_ring_lacks_is_refused(channel):
    with pytest.raises(BadInput, match=f"key 'a' is pinned to worker {channel}, but workers run from 0 to 7"):
        HybridPartitioner({"a": channel}, RING)


def test_a_key_of_another_type_is_refused_alone_as_in_a_column():
    built = HybridPartitioner({"1": 0}, RING)
    with pytest.raises(UsageError, match="int64 keys"):
        built.channel_of(1)
    with pytest.raises(UsageError, match="int64 keys"):
        built.channels_of(pa.array([1]))


def test_it_travels_light_and_arrives_equal():
    built = HybridPartitioner({"a": 1}, RING)
    assert len(pickle.dumps(built)) < 3000
    assert pickle.loads(pickle.dumps(built)) == built
