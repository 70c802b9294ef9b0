import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.keys.key_text import key_to_text, keys_from_texts
from adapt.core.stream import COLUMN_TYPES, KeyType

KEYS = {KeyType.STRING: st.text(), KeyType.INT64: st.integers(-(2**63), 2**63 - 1), KeyType.BINARY: st.binary()}


@pytest.mark.parametrize("key_type", COLUMN_TYPES)
@given(st.data())
def test_a_key_is_read_back_from_its_text(key_type, data):
    keys = data.draw(st.lists(KEYS[key_type]))
    assert keys_from_texts(map(key_to_text, keys), key_type).to_pylist() == keys


def test_texts_are_what_other_languages_write():
    assert [key_to_text(key) for key in ("ä", -7, b"\x00\xff")] == ["ä", "-7", "00ff"]


@pytest.mark.parametrize(
    "text", ["", "x", "1.0", "1e3", "007", "-0", "+1", " 1", "1_0", "١", "-", str(2**63), "9" * 5000]
)
def test_what_is_no_int64_in_plain_decimal_is_refused(text):
    with pytest.raises(BadInput, match="must be 64-bit integers in decimal"):
        keys_from_texts([text], KeyType.INT64)


@pytest.mark.parametrize("text", ["f", "xx", "0x00", "00 ff"])
def test_what_is_no_hex_is_refused(text):
    with pytest.raises(BadInput, match="must be bytes in hex"):
        keys_from_texts([text], KeyType.BINARY)


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(BadInput, match="must be Unicode text"):
        keys_from_texts(["\ud800"], KeyType.STRING)
