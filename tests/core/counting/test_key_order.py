"""The order of keys, against sorting by count and bytes one by one."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.frequencies import heaviest, key_order

KINDS = {
    "string": (pa.string(), st.text(max_size=3), lambda key: key.encode()),
    "large_string": (pa.large_string(), st.text(max_size=3), lambda key: key.encode()),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1), lambda key: key.to_bytes(8, "little", signed=True)),
    "binary": (pa.binary(), st.binary(max_size=3), bytes),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_order_is_falling_count_then_null_then_key_bytes(kind, data):
    arrow, keys, to_bytes = KINDS[kind]
    listed = data.draw(st.lists(st.one_of(st.none(), keys), unique=True, max_size=12))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(listed), max_size=len(listed)))
    order = key_order(pa.array(listed, arrow), np.array(counts, dtype=np.int64))
    plain = sorted(
        range(len(listed)),
        key=lambda at: (-counts[at], listed[at] is not None, b"" if listed[at] is None else to_bytes(listed[at])),
    )
    assert order.tolist() == plain


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 12))
def test_the_heaviest_are_the_first_in_order(counts, most):
    keys = pa.array([f"k{at * 7 % 31}" for at in range(len(counts))], pa.string())
    found = heaviest(keys, np.array(counts, np.int64), most)
    assert found.tolist() == key_order(keys, np.array(counts, np.int64))[:most].tolist()


def test_integers_sort_by_their_little_endian_bytes():
    keys = pa.array([1, 256, -1])
    assert keys.take(pa.array(key_order(keys, np.ones(3)))).to_pylist() == [256, 1, -1]
