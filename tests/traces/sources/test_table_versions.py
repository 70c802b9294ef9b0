"""Tables are read at the version that is current when an ingest begins; a session with canned answers stands in."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from adapt.traces.sources.frames import Query

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
