"""Exact counting, in one batch or many."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.frequencies.exact import count_keys, frequencies_of, merge
from adapt.core.stream import Weight

keys = st.one_of(st.none(), st.sampled_from(["", "a", "b", "é", "ab"]))
batches = st.lists(st.lists(keys, max_size=8), min_size=1, max_size=5)


def as_dict(frequencies):
    return dict(zip(frequencies.keys.to_pylist(), frequencies.count_low.tolist(), strict=True))


@given(batches)
def test_batches_count_as_one_stream(rows):
    parts = [count_keys(pa.array(batch, pa.string())) for batch in rows]
    whole = [key for batch in rows for key in batch]
    counted = frequencies_of(parts)
    assert as_dict(counted) == Counter(whole)
    assert (counted.total, counted.rows, counted.distinct) == (len(whole), len(whole), len(set(whole)))
    assert counted.count_high is counted.count_low


@given(st.lists(st.tuples(st.sampled_from([None, 0, 1, -7]), st.integers(0, 2**60)), max_size=8))
def test_integer_weights_are_added_exactly(rows):
    column = pa.array([key for key, _ in rows], pa.int64())
    counted = count_keys(column, np.array([weight for _, weight in rows], dtype=np.int64))
    assert counted.counts.dtype == np.int64
    assert dict(zip(counted.keys.to_pylist(), counted.counts.tolist(), strict=True)) == {
        key: sum(weight for other, weight in rows if other == key) for key, _ in rows
    }


def test_float_weights_are_added_in_row_order():
    weights = np.array([1e16, 1.0, -1e16, 1.0])
    counted = count_keys(pa.array(["a"] * 4), weights)
    assert counted.counts.tolist() == [((1e16 + 1.0) - 1e16) + 1.0]


def test_null_is_a_key_of_its_own_and_not_the_empty_text():
    assert as_dict(frequencies_of(count_keys(pa.array(["", None, None])))) == {None: 2, "": 1}


def test_several_chunks_count_as_one_column():
    column = pa.chunked_array([["a", "b"], ["b", None]])
    assert as_dict(frequencies_of(count_keys(column))) == {"b": 2, "a": 1, None: 1}


def test_keys_come_in_the_tie_order():
    counted = frequencies_of(count_keys(pa.array(["b", "a", "c", "c", None])))
    assert counted.keys.to_pylist() == ["c", None, "a", "b"]


def test_merging_is_counting():
    parts = [count_keys(pa.array(["a", "b"])), count_keys(pa.array(["b"]))]
    merged = merge(parts)
    assert (merged.keys.to_pylist(), merged.counts.tolist(), merged.rows) == (["a", "b"], [1, 2], 3)


def test_an_empty_batch_is_an_empty_stream():
    counted = frequencies_of(count_keys(pa.array([], pa.string())))
    assert (len(counted.keys), counted.total, counted.distinct) == (0, 0, 0)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_that_is_no_weight_is_refused(weight):
    counted = count_keys(pa.array(["a"]), np.array([weight]))
    with pytest.raises(BadInput, match=r"key 'a' weighs .* finite number from 0 up"):
        frequencies_of(counted, Weight.COST)
