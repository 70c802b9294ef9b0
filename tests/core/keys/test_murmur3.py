import mmh3
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.keys.columns import key_bytes
from adapt.core.keys.murmur3 import murmur3


def hashes(column):
    return [(int(h1), int(h2)) for h1, h2 in zip(*murmur3(key_bytes(column)), strict=True)]


def test_every_length_agrees_with_the_reference():
    keys = [bytes(range(length % 256)) * 2 for length in range(301)]
    assert hashes(pa.array(keys)) == [mmh3.hash64(key, 0, signed=False) for key in keys]


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_bytes_agree_with_the_reference(keys):
    assert hashes(pa.array(keys, pa.binary())) == [mmh3.hash64(key, 0, signed=False) for key in keys]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_hash_as_eight_bytes(keys):
    expected = [mmh3.hash64(key.to_bytes(8, "little", signed=True), 0, signed=False) for key in keys]
    assert hashes(pa.array(keys, pa.int64())) == expected
