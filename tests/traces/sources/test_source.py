"""Rows of a source on Spark, and versions of tables."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

from adapt.traces.sources.frames import Query
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.blocks import BLOCK_BYTES, Block
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.source import _by_block
from adapt.traces.store import disk


def test_lines_go_to_the_block_that_holds_them(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x\n")
    a, b = source_files([str(tmp_path)])
    blocks = [Block(0, a, 0, 10, 1), Block(0, a, 10, 10, 4), Block(0, a, 20, None, 9), Block(1, b)]
    assert _by_block(blocks, {0: [3, 4, 8], 1: [7]}) == {0: [3], 1: [4, 8], 3: [7]}
    assert _by_block(blocks, {0: [9, 10_000]}) == {2: [9, 10_000]}
    assert _by_block(blocks, {}) == {}


def test_texts_of_both_ends_of_a_large_file_are_those_lines_alone(tmp_path, opened):
    line = f"{'x' * 99},1"
    lines = 2 * BLOCK_BYTES // (len(line) + 1)
    path = tmp_path / "in.csv"
    path.write_text("key,n\n" + f"{line}\n" * (lines - 1) + "end,2\n")
    source = opened(path, format=FormatName.CSV, delimiter=",", header=True)
    rows = source.texts({0: [2, lines + 1]}).collect()
    assert sorted((row["_line"], row["_text"]) for row in rows) == [(2, line), (lines + 1, "end,2")]


def test_two_attempts_at_one_file_leave_one_complete_file(tmp_path):
    path, table = tmp_path / "block.parquet", pa.table({"n": list(range(1000))})
    with disk.complete_file(path, 1) as first:
        pq.write_table(table.slice(0, 10), first)
        with disk.complete_file(path, 2) as second:
            pq.write_table(table, second)
            assert not path.exists()
        assert pq.read_table(path) == table
        pq.write_table(table, first)
    assert [each.name for each in tmp_path.iterdir()] == ["block.parquet"]
    assert pq.read_table(path) == table


def test_an_attempt_that_fails_leaves_nothing(tmp_path):
    def fail():
        with disk.complete_file(tmp_path / "block.parquet", 1) as path:
            path.write_bytes(b"half")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        fail()
    assert list(tmp_path.iterdir()) == []


COLUMNS = [{"col_name": "Provider", "data_type": "string"}, {"col_name": "ts", "data_type": "timestamp"}]
TABLE = "shop.db.events"


@dataclass
class Answer:
    """Rows of an SQL statement."""

    rows: list[Any]
    columns: list[str] = field(default_factory=lambda: ["Provider", "ts"])

    def collect(self) -> list[Any]:
        return self.rows

    def first(self) -> Any:
        return self.rows[0] if self.rows else None


@dataclass
class Session:
    """Answers each statement as Spark documents it for a format, and notes the others."""

    answers: dict[str, list[Any]]
    read: list[str] = field(default_factory=list)
    refused: str = ""

    def sql(self, text: str) -> Answer:
        if text == self.refused:
            raise AnalysisException("[TABLE_OR_VIEW_NOT_FOUND]")
        if text not in self.answers:
            self.read.append(text)
        return Answer(self.answers.get(text, []))

    def table(self, name: str) -> Answer:
        self.read.append(f"current {name}")
        return Answer([])


SNAPSHOT = f"SELECT snapshot_id FROM {TABLE}.refs WHERE name = 'main'"
CASES = {
    "iceberg": (SNAPSHOT, [(8744736658442914487,)]),
    "delta": (f"DESCRIBE HISTORY {TABLE} LIMIT 1", [(12, "2024-01-01", "WRITE")]),
}


def _session(kind: str, answers: dict[str, list[Any]]) -> Any:
    facts = [*COLUMNS, {"col_name": "Provider", "data_type": kind}]
    return Session({f"DESCRIBE TABLE EXTENDED {TABLE}": facts, **answers})


@pytest.mark.parametrize("kind", CASES)
def test_the_current_version_is_read_and_kept(kind: str) -> None:
    statement, rows = CASES[kind]
    spark = _session(kind, {statement: rows})
    pinned = Query(TABLE).pinned(spark)
    assert pinned == Query(TABLE, version=str(rows[0][0]))
    assert pinned.pinned(spark) is pinned
    pinned.opened(spark)
    assert spark.read == [f"SELECT * FROM {TABLE} VERSION AS OF {rows[0][0]}"]


@pytest.mark.parametrize(
    ("kind", "answers"), [("parquet", {}), ("iceberg", {SNAPSHOT: []})], ids=["no versions", "no rows yet"]
)
def test_a_table_without_versions_is_read_as_it_is(kind: str, answers: dict[str, list[Any]]) -> None:
    spark = _session(kind, answers)
    pinned = Query(TABLE).pinned(spark)
    assert pinned == Query(TABLE)
    pinned.opened(spark)
    assert spark.read == [f"current {TABLE}"]


def test_what_is_written_after_the_pin_is_not_read() -> None:
    """Another snapshot becomes current between the pin and the read."""
    spark = _session("iceberg", {SNAPSHOT: [(1,)]})
    pinned = Query(TABLE).pinned(spark)
    spark.answers[SNAPSHOT] = [(2,)]
    pinned.opened(spark)
    assert (pinned.version, spark.read) == ("1", [f"SELECT * FROM {TABLE} VERSION AS OF 1"])


def test_a_branch_without_references_of_its_own_is_read_as_it_is() -> None:
    spark = _session("iceberg", {SNAPSHOT: [(1,)]})
    spark.refused = SNAPSHOT
    assert Query(TABLE).pinned(spark) == Query(TABLE)


def test_a_query_names_its_own_version() -> None:
    spark = _session("iceberg", {})
    query = Query(sql=f"SELECT * FROM {TABLE} VERSION AS OF 3")
    assert query.pinned(spark) is query
    assert spark.read == []
