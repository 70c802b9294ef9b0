"""Keys taken apart into distinct keys and a number a row: by hashing, by a table, or given as a dictionary."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.keys.key_coder import MOST_PLACES, Coder, coded_numbers

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
