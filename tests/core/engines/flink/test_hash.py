"""Flink's key groups: vectors made with its own classes, and plain forms of Java's definitions."""

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.flink.hash import flink_hash, hash_codes
from adapt.core.engines.flink.scheme import FlinkPartitioner

VECTORS = {
    "": (94, 11),
    "a": (81, 10),
    "user": (105, 13),
    "user000001": (111, 13),
    "é": (30, 3),
    "ключ": (67, 8),
    "日本語": (27, 3),
    "\N{GRINNING FACE}": (54, 6),
    "x" * 33: (34, 4),
}
"""Key: key group of 128, subtask of 16."""


def signed(number):
    return (number + 2**31) % 2**32 - 2**31


def plain_code(units, start=0):
    """s[0] 31^(n-1) + ... + s[n-1] in 32 bits."""
    code = start
    for unit in units:
        code = code * 31 + unit
    return signed(code)


def utf16(text):
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


@pytest.mark.parametrize("key", VECTORS)
def test_a_key_has_the_group_and_subtask_of_flink(key):
    group, subtask = VECTORS[key]
    assert flink_hash(pa.array([key])).tolist()[0] % 128 == group
    assert FlinkPartitioner(16, 128).channel_of(key) == FlinkPartitioner(16).channel_of(key) == subtask


@given(st.lists(st.text(max_size=40), max_size=20))
def test_strings_run_over_utf_16_units(keys):
    assert hash_codes(pa.array(keys, pa.string())).tolist() == [plain_code(utf16(key)) for key in keys]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_fold_their_two_halves(keys):
    expected = [signed((key % 2**64) ^ (key % 2**64 >> 32)) for key in keys]
    assert hash_codes(pa.array(keys, pa.int64())).tolist() == expected


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_bytes_run_over_signed_bytes_from_one(keys):
    expected = [plain_code([byte if byte < 128 else byte - 256 for byte in key], 1) for key in keys]
    assert hash_codes(pa.array(keys, pa.binary())).tolist() == expected


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=50))
def test_codes_are_mixed_as_a_key_of_four_bytes(codes):
    """An int64 key whose upper half repeats its sign has its lower half, or the complement, as its code."""
    expected = [mmh3.hash((code if code >= 0 else ~code).to_bytes(4, "little"), 0) for code in codes]
    assert flink_hash(pa.array(codes, pa.int64())).tolist() == [
        0 if each == -(2**31) else abs(each) for each in expected
    ]
