"""The hash of columns depends on their values and order, and on nothing else."""

from datetime import date
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.traces.store.tables import ColumnHasher, columns_hash

KINDS = {
    "string": (pa.string(), st.text(max_size=5)),
    "large_string": (pa.large_string(), st.text(max_size=5)),
    "binary": (pa.binary(), st.binary(max_size=5)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
    "ts": (pa.timestamp("us", "UTC"), st.integers(-(2**60), 2**60)),
    "date": (pa.date32(), st.dates(date(1900, 1, 1))),
    "decimal": (pa.decimal128(9, 2), st.integers(0, 10**6).map(lambda cents: Decimal(cents) / 100)),
    "list": (pa.list_(pa.int32()), st.lists(st.integers(0, 9), max_size=3)),
    "struct": (pa.struct({"a": pa.string()}), st.fixed_dictionaries({"a": st.text(max_size=3)})),
}


@st.composite
def columns(draw):
    """A column of any kind with nulls."""
    kind, values = draw(st.sampled_from(sorted(KINDS.items())))[1]
    return pa.array(draw(st.lists(st.none() | values, max_size=12)), kind)


def digest(batches):
    hasher = ColumnHasher(["a"])
    for batch in batches:
        hasher.update(pa.RecordBatch.from_arrays([batch], names=["a"]))
    return hasher.digest()


@given(columns(), st.lists(st.integers(0, 12), max_size=4))
def test_a_cut_into_batches_does_not_show(column, cuts):
    ends = [0, *sorted(min(cut, len(column)) for cut in cuts), len(column)]
    parts = [column.slice(begin, end - begin) for begin, end in pairwise(ends)]
    assert digest(parts) == digest([column])


@given(columns(), st.randoms())
def test_another_order_or_length_is_another_hash(column, random):
    order = random.sample(range(len(column)), len(column))
    shuffled = column.take(pa.array(order, pa.int64()))
    assert shuffled.equals(column) or digest([shuffled]) != digest([column])
    assert digest([column, pa.nulls(1, column.type)]) != digest([column])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([None], [""]),
        (["a", "b"], ["ab", ""]),
        (["", "a"], ["a", ""]),
        ([None, "a"], ["a", None]),
        ([], [None]),
        (["a"], ["a", ""]),
    ],
)
def test_texts_that_run_together_alike_are_told_apart(one, other):
    assert digest([pa.array(one, pa.string())]) != digest([pa.array(other, pa.string())])


def test_what_stands_under_a_null_does_not_show():
    hidden = pa.Array.from_buffers(pa.int64(), 1, [pa.py_buffer(b"\x00"), pa.py_buffer((7).to_bytes(8, "little"))])
    assert digest([hidden]) == digest([pa.array([None], pa.int64())])


def test_a_table_is_hashed_with_its_names_and_types():
    table = pa.table({"a": [1, 2]})
    assert columns_hash(table) != columns_hash(table.rename_columns(["b"]))
    assert columns_hash(table) != columns_hash(table.cast(pa.schema({"a": pa.int32()})))
    assert columns_hash(table) == columns_hash(pa.concat_tables([table.slice(0, 1), table.slice(1)]))
