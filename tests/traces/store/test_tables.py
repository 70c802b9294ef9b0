"""Tables, runs and comparisons come back as they were written."""

import json
from datetime import date
from decimal import Decimal
from itertools import count, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.repartition.decisions import Replan, Schedule
from adapt.core.repartition.replay import replay_repartition
from adapt.core.table import Column, Kind, Table
from adapt.core.units.row_or_time_span import Length
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.runs import StoredRun, read_run, write_run
from adapt.traces.store.tables import (
    ColumnHasher,
    arrow_of,
    columns_hash,
    read_table,
    table_facts,
    table_hash,
    write_table,
)

REAL = st.none() | st.floats(allow_nan=False)
WHOLE = st.none() | st.integers(-(2**63), 2**63 - 1)
CELLS = {
    Kind.TEXT: st.none() | st.text(st.characters(codec="utf-8")),
    Kind.COUNT: WHOLE,
    Kind.NUMBER: REAL,
    Kind.RATIO: REAL,
    Kind.SHARE: REAL,
    Kind.BYTES: WHOLE,
    Kind.SECONDS: REAL,
    Kind.TIME: WHOLE,
}
COLUMNS = tuple(Column(kind.value, kind, "s" if kind is Kind.SECONDS else "", f"about {kind}") for kind in Kind)
tables = st.lists(st.tuples(*(CELLS[kind] for kind in Kind))).map(
    lambda rows: Table.from_rows("T", COLUMNS, rows, "a note")
)


@given(tables)
def test_a_table_comes_back_with_its_cells_kinds_units_and_words(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    write_table(table, path)
    back = read_table(path, table_facts(table))
    assert back == table
    assert [[type(cell) for cell in row] for row in back.rows] == [[type(cell) for cell in row] for row in table.rows]


def test_other_readers_see_times_as_times_and_real_numbers_as_such():
    table = Table.from_rows("T", [Column("at", Kind.TIME), Column("ratio", Kind.RATIO)], [(0, 1)])
    assert arrow_of(table).schema.types == [pa.timestamp("us", "UTC"), pa.float64()]


def test_flags_and_fractions_of_bytes_are_kept():
    table = Table.from_rows("T", [Column("on"), Column("mean", Kind.BYTES)], [(True, 1.5), (None, 2)])
    assert arrow_of(table).to_pylist() == [{"on": True, "mean": 1.5}, {"on": None, "mean": 2.0}]


def test_cells_that_do_not_go_together_are_refused_by_column():
    with pytest.raises(ValueError, match="'x' mixes types of cells: int, str"):
        arrow_of(Table.from_rows("T", [Column("x")], [("a",), (1,)]))


def test_the_hash_is_over_the_cells_but_not_over_what_a_clock_said():
    columns = [Column("n", Kind.COUNT), Column("build_s", Kind.SECONDS, "s")]
    slow, fast, other = (Table.from_rows("T", columns, [row]) for row in ((1, 9.0), (1, None), (2, 9.0)))
    assert table_hash(slow) == table_hash(fast) != table_hash(other)


def test_a_file_of_another_table_is_not_taken_for_it(tmp_path):
    table = Table.from_rows("T", [Column("n", Kind.COUNT)], [(1,)])
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match="2 rows of n do not match"):
        read_table(tmp_path / "t.parquet", table_facts(table))


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


MADE = Provenance("adapt replay repartition", {"period": "1ms"}, [{"name": "a.trace", "content_hash": "0"}])


def replayed(channels=3, step=1.0, rows=4000):
    keys = pa.array(np.random.default_rng(1).zipf(1.3, rows) % 100).cast(pa.string())
    batch = pa.record_batch({"ts": pa.array(np.arange(rows), pa.timestamp("us", "UTC")), "key": keys})
    ticks = count(step=step)
    return replay_repartition(
        lambda columns: [batch.select(columns)],
        Replan(Recipe(Scheme.HYBRID, replicas=20), Schedule.fixed(channels), Length.parse("1ms")),
        clock=lambda: next(ticks),
    )


def test_a_run_comes_back_as_it_was_measured(tmp_path):
    run = replayed()
    manifest = write_run(run, tmp_path / "a.run", MADE)
    back = read_run(tmp_path / "a.run")
    assert (back.summary, dict(back.tables)) == (run.summary(), run.tables())
    assert json.dumps(back.as_data()) == json.dumps(run.as_data())
    assert back.periods is back.tables["periods"]
    assert back.manifest == manifest
    assert manifest.made == MADE


def test_the_content_hash_is_of_what_was_measured_not_of_when(tmp_path):
    runs = {"one": replayed(), "slower": replayed(step=7.0), "other": replayed(channels=4)}
    hashes = {name: write_run(run, tmp_path / name, MADE).content_hash for name, run in runs.items()}
    assert hashes["one"] == hashes["slower"] != hashes["other"]


def test_a_run_of_another_mechanism_has_no_periods_to_give(tmp_path):
    write_run(replayed(), tmp_path / "a.run", MADE)
    back = read_run(tmp_path / "a.run")
    other = StoredRun(back.path, back.manifest, "flux", {}, back.summary, {})
    with pytest.raises(BadInput, match="a run of flux, which has no periods"):
        _ = other.periods
