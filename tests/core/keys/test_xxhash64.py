import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh64_intdigest

from adapt.core.keys.columns import key_bytes
from adapt.core.keys.xxhash64 import xxhash64


def hashes(column):
    return xxhash64(key_bytes(column)).tolist()


def test_every_length_agrees_with_the_reference():
    keys = [bytes(range(length % 256)) * 2 for length in range(301)]
    assert hashes(pa.array(keys)) == [xxh64_intdigest(key, 42) for key in keys]


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_bytes_agree_with_the_reference(keys):
    assert hashes(pa.array(keys, pa.binary())) == [xxh64_intdigest(key, 42) for key in keys]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_hash_as_eight_bytes(keys):
    expected = [xxh64_intdigest(key.to_bytes(8, "little", signed=True), 42) for key in keys]
    assert hashes(pa.array(keys, pa.int64())) == expected
