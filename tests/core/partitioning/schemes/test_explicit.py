import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.stream import KeyType

MAPS = st.one_of(
    st.dictionaries(st.none() | keys, st.integers(0, 2**31 - 2))
    for keys in (st.text(), st.binary(), st.integers(-(2**63), 2**63 - 1))
)


@given(MAPS)
def test_it_reads_as_the_mapping_it_was_made_of(mapping):
    made = ExplicitMap.from_mapping(mapping)
    assert made == mapping
    assert dict(zip(made.column.to_pylist(), made.channels.tolist(), strict=True)) == mapping


@given(MAPS)
def test_it_is_in_key_order_with_null_first(mapping):
    keys = list(ExplicitMap.from_mapping(mapping))
    as_bytes = [key.encode() if isinstance(key, str) else key for key in keys if key is not None]
    assert as_bytes == sorted(as_bytes)
    assert None not in keys[1:]


@given(MAPS)
def test_it_survives_travel(mapping):
    assert pickle.loads(pickle.dumps(ExplicitMap.from_mapping(mapping))) == mapping


def test_rows_of_a_column_are_found_and_null_matches_null():
    made = ExplicitMap.from_mapping({"b": 1, None: 2, "a": 3})
    assert made.rows_of(pa.array(["a", "x", None, "b", "a"])).tolist() == [1, -1, 0, 2, 1]
    assert made.rows_of(pa.array(["b"], pa.large_string())).tolist() == [2]


def test_without_a_null_of_its_own_it_does_not_hold_null():
    assert ExplicitMap.from_mapping({"a": 0}).rows_of(pa.array(["a", None])).tolist() == [0, -1]


def test_a_map_of_null_alone_is_of_any_type():
    assert ExplicitMap.from_mapping({None: 0}).rows_of(pa.array([5, None])).tolist() == [-1, 0]


def test_keys_of_another_type_are_refused():
    with pytest.raises(UsageError, match="column has int64 keys, but the pinned keys are string"):
        ExplicitMap.from_mapping({"1": 0}).rows_of(pa.array([1]))


def test_keys_of_two_types_are_refused():
    with pytest.raises(UsageError, match="one type"):
        ExplicitMap.from_mapping({"1": 0, 1: 0})


def test_keys_of_another_type_than_was_asked_for_are_refused():
    with pytest.raises(UsageError, match="one type"):
        ExplicitMap.from_mapping(ExplicitMap.from_mapping({b"1": 0}), KeyType.INT64)


def test_the_type_of_an_empty_map_is_the_one_asked_for():
    assert ExplicitMap.from_mapping(ExplicitMap.from_mapping({}), KeyType.BINARY).key_type is KeyType.BINARY


@pytest.mark.parametrize(
    ("keys", "named"), [(["b", "a", "b"], "key 'b'"), ([None, "a", None], "the null key"), ([7, 7], "key 7")]
)
def test_a_key_that_stands_twice_is_refused(keys, named):
    with pytest.raises(BadInput, match=f"{named} is pinned to two workers"):
        ExplicitMap(pa.array(keys), [0] * len(keys))


@pytest.mark.parametrize("channel", [-1, 2**31 - 1, 2**32])
def test_a_channel_that_cannot_be_is_refused_and_never_wraps(channel):
    with pytest.raises(BadInput, match=f"key 'a' is pinned to worker {channel}, but workers run from 0"):
        ExplicitMap.from_mapping({"a": channel})


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 keys do not fit 1 channels"):
        ExplicitMap(pa.array(["a", "b"]), [0])


def test_it_is_not_changed_from_outside():
    made = ExplicitMap.from_mapping({"a": 0})
    with pytest.raises(ValueError, match="read-only"):
        made.channels[0] = 1
