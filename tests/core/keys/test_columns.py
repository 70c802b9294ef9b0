import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.keys.columns import column_of, key_bytes

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
