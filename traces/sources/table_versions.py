"""Versions of tables: snapshots of Iceberg, versions of Delta."""

from collections.abc import Mapping
from contextlib import suppress

from adapt.traces.spark.lazy import SparkSession

CURRENT: Mapping[str, str] = {
    "iceberg": "SELECT snapshot_id FROM {}.refs WHERE name = 'main'",  # its history is ordered by clocks of writers
    "delta": "DESCRIBE HISTORY {} LIMIT 1",
}
"""By format, the query whose first cell is the current version of a table."""


def current_version(spark: SparkSession, table: str) -> str:
    """The current version of a table, for `VERSION AS OF`.

    Empty where its format has no versions, it has no rows yet, or it is a branch or another view of a table.
    """
    from pyspark.errors import AnalysisException

    query, row = CURRENT.get(_format(spark, table)), None
    with suppress(AnalysisException):
        row = None if query is None else spark.sql(query.format(table)).first()
    return "" if row is None else str(row[0])


def _format(spark: SparkSession, table: str) -> str:
    """The format of a table; empty for views, and where a catalog does not say."""
    from pyspark.errors import AnalysisException

    with suppress(AnalysisException):  # of a table that is not there, the reader says so
        facts = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
        # the facts follow the columns, of which one may have this name
        return next((str(row["data_type"]).lower() for row in reversed(facts) if row["col_name"] == "Provider"), "")
    return ""
