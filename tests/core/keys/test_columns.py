"""Columns of keys: their bytes, codes and texts, by every type."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import column_of, key_bytes
from adapt.core.keys.key_coder import MOST_PLACES, Coder, coded_numbers
from adapt.core.keys.key_text import key_to_text, keys_from_texts
from adapt.core.keys.typed_keys import columns_of, row_of
from adapt.core.stream import COLUMN_TYPES, KeyType

TEXTS = st.lists(st.none() | st.text(max_size=20), max_size=20)
INTEGERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20)


def split(column):
    """The bytes of each key, cut by the offsets."""
    keys = key_bytes(column)
    assert len(keys) == len(column)
    return [bytes(keys.data[start:end]) for start, end in zip(keys.offsets, keys.offsets[1:], strict=False)]


@given(st.lists(st.none() | st.binary(max_size=20), max_size=20), st.sampled_from([pa.binary(), pa.large_binary()]))
def test_binaries_are_themselves_and_null_is_empty(keys, kind):
    assert split(pa.array(keys, kind)) == [key or b"" for key in keys]


@given(INTEGERS)
def test_integers_are_eight_bytes_little_endian_and_null_is_empty(keys):
    expected = [b"" if key is None else key.to_bytes(8, "little", signed=True) for key in keys]
    assert split(pa.array(keys, pa.int64())) == expected


@given(TEXTS, INTEGERS, st.data())
def test_a_slice_has_the_bytes_of_its_own_rows(texts, integers, data):
    for column in (pa.array(texts, pa.string()), pa.array(texts, pa.large_string()), pa.array(integers, pa.int64())):
        start = data.draw(st.integers(0, len(column)))
        stop = data.draw(st.integers(start, len(column)))
        assert split(column[start:stop]) == split(column)[start:stop]


def test_a_null_slot_with_bytes_beneath_is_empty():
    offsets = pa.py_buffer(np.array([0, 1, 4, 5], np.int32))
    column = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"aXXXb"), pa.py_buffer(bytes([0b101])))
    assert column.to_pylist() == ["a", None, "b"]
    assert split(column) == [b"a", b"", b"b"]


@pytest.mark.parametrize("keys", [pa.array(["a", "b"]), pa.array([1, None]), pa.array([], pa.binary())])
def test_every_column_reaches_the_kernels_as_the_same_types_of_array(keys):
    made = key_bytes(keys)
    assert made.data.dtype == np.uint8
    assert not made.data.flags.writeable
    assert made.data.flags.c_contiguous
    assert made.offsets.dtype == np.int64
    assert made.offsets.flags.writeable
    assert made.offsets.flags.aligned


def test_a_column_of_numbers_that_are_no_keys_is_refused():
    with pytest.raises(ValueError, match="got double"):
        key_bytes(pa.array([1.5]))


@pytest.mark.parametrize("key", [2**63, -(2**63) - 1, "\ud800"])
def test_what_no_trace_can_hold_is_refused(key):
    with pytest.raises(UsageError, match="is not a valid key"):
        column_of(key)


SMALL = st.integers(0, 40)
NUMBERS = st.lists(st.one_of(SMALL, st.integers(MOST_PLACES - 2, 2**62)), max_size=60)


@given(st.one_of(st.lists(SMALL, max_size=60), NUMBERS))
def test_numbers_are_told_by_their_first_rows(numbers):
    distinct, codes = coded_numbers(np.array(numbers, np.int64))
    assert distinct.tolist() == list(dict.fromkeys(numbers))
    assert distinct[codes].tolist() == numbers


@given(st.lists(SMALL, min_size=1, max_size=60), st.integers(1, 20))
def test_a_dictionary_given_once_or_found_in_each_batch_is_the_same(numbers, step):
    distinct, codes = coded_numbers(np.array(numbers, np.int64))
    given_codes = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([f"k{number}" for number in distinct]))
    texts = pa.array([f"k{number}" for number in numbers])
    told = []
    for keys in (given_codes, texts):
        coder = Coder()
        for first in range(0, len(numbers), step):
            coder.add(keys.slice(first, step))
        told.append(coder.done())
    assert told[0].keys.equals(told[1].keys)
    assert told[0].codes.tolist() == told[1].codes.tolist() == codes.tolist()


@pytest.mark.parametrize("keys", [["a", None, "b", "a"], [None, None], [3, 4, None, 3]])
def test_a_missing_key_is_one_of_the_keys(keys):
    coder = Coder()
    for key in keys:
        coder.add(pa.array([key], pa.string() if isinstance(keys[0], str | None) else pa.int64()))
    coded = coder.done()
    assert [coded.keys[at].as_py() for at in coded.codes] == keys
    assert coded.counts().tolist() == [keys.count(key) for key in coded.keys.to_pylist()]


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


PAIR = KeyType("(string,int32)")
good = st.tuples(st.none() | st.text(max_size=8), st.none() | st.integers(-(2**31), 2**31 - 1))
cut = st.text('[]{}",:\\ \na1', max_size=8)
"""Pieces of rows: brackets that are left open, several rows in one key."""


def by_itself(texts, key_type):
    rows = [row_of(text, key_type) for text in texts]
    known = [row for row in rows if row is not None]
    return [at for at, row in enumerate(rows) if row is not None], [list(values) for values in zip(*known, strict=True)]


@given(st.lists(good.map(lambda row: json.dumps(row, ensure_ascii=False)) | cut, max_size=6), st.booleans())
def test_rows_parsed_at_once_are_those_parsed_one_by_one(texts, all_good):
    texts = [text for text in texts if not all_good or row_of(text, PAIR)]
    places, columns = columns_of(key_bytes(pa.array(texts, pa.string())), PAIR)
    expected = by_itself(texts, PAIR)
    assert (places.tolist(), columns if len(places) else []) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ['["a"', "1]", '["b",2],["c",3]'],
        ['["a",[1]', '["b",2]]', '["c",3],["d",4]'],
        ['["a",1]', '[1,"a"]'],
        ['["a",2147483648]'],
        ['["a",true]', '["b",1.0]'],
        ['["\\ud800",1]', '["a",1]'],
        ["[" * 5000 + "]" * 5000],
        ['["a",1],5,["b",2]', '["c",3]', '["d",4]'],
    ],
)
def test_what_is_no_row_by_itself_is_none_among_others(texts):
    places, columns = columns_of(key_bytes(pa.array(texts)), PAIR)
    assert (places.tolist(), columns if len(places) else []) == by_itself(texts, PAIR)
