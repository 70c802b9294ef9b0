"""Tables on disk come back as they went."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.table import Column, Kind, Table
from adapt.traces.store.tables import arrow_of, read_table, table_facts, table_hash, write_table

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
