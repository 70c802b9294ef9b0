"""Hashes of keys against independent libraries, and positions on a ring."""

from bisect import bisect_left

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh64_intdigest

from adapt.core.keys.columns import key_bytes
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.murmur3 import murmur3
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import SortedPositions

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


# Words that meet often: ends of the range, equal high words, leading bits alike.
WORDS = st.sampled_from([0, 1, 2, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]) | st.integers(0, 2**64 - 1)
POSITIONS = st.tuples(WORDS, WORDS)


def words(pairs):
    columns = np.array(pairs, np.uint64).reshape(-1, 2)
    return columns[:, 0].copy(), columns[:, 1].copy()


@given(st.lists(POSITIONS, min_size=1, max_size=50).map(sorted), st.lists(POSITIONS, max_size=50))
def test_the_first_at_or_after_is_what_bisection_over_whole_numbers_finds(positions, sought):
    numbers = [high * 2**64 + low for high, low in positions]
    expected = [bisect_left(numbers, high * 2**64 + low) % len(numbers) for high, low in sought]
    assert SortedPositions.from_sorted(*words(positions)).first_at_or_after(*words(sought)).tolist() == expected


@given(st.lists(POSITIONS, min_size=1, max_size=50).map(sorted))
def test_a_position_is_at_itself_and_of_equal_ones_the_first_counts(positions):
    found = SortedPositions.from_sorted(*words(positions)).first_at_or_after(*words(positions))
    assert found.tolist() == [positions.index(position) for position in positions]


def test_evenly_spread_positions_are_one_or_two_buckets_each():
    for count in (1, 2, 3, 1000, 1024):
        high = np.linspace(0, 2**63, count).astype(np.uint64)
        assert count < len(SortedPositions.from_sorted(high, high).starts) <= max(2, 2 * count)
