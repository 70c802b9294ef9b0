import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh64_intdigest

from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName

KEYS = st.lists(st.binary(max_size=40), max_size=20)
DIVISORS = st.integers(1, 2**31 - 1)


@given(KEYS, DIVISORS)
def test_murmur3_modulo_is_exact_on_the_whole_number(keys, n):
    words = [mmh3.hash64(key, 0, signed=False) for key in keys]
    expected = [(h1 * 2**64 + h2) % n for h1, h2 in words]
    assert HASHES[HashName.MURMUR3].modulo(pa.array(keys, pa.binary()), n).tolist() == expected


@given(KEYS, DIVISORS)
def test_xxhash64_modulo_is_the_positive_remainder_of_the_signed_value(keys, n):
    signed = [(xxh64_intdigest(key, 42) + 2**63) % 2**64 - 2**63 for key in keys]
    assert HASHES[HashName.XXHASH64].modulo(pa.array(keys, pa.binary()), n).tolist() == [h % n for h in signed]


@pytest.mark.parametrize("name", HashName)
def test_null_hashes_like_the_empty_key_of_any_type(name):
    hashed = [
        HASHES[name].positions(pa.array([key], kind))
        for key, kind in [("", pa.string()), (None, pa.string()), (None, pa.int64()), (b"", pa.binary())]
    ]
    assert len({(int(high[0]), int(low[0])) for high, low in hashed}) == 1
