"""Keys of several columns, parsed many at once: as each by itself."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.keys.columns import key_bytes
from adapt.core.keys.typed_keys import columns_of, row_of
from adapt.core.stream import KeyType

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
