"""Versions of tables: snapshots of Iceberg, versions of Delta."""

from collections.abc import Mapping
from contextlib import suppress

from adapt.traces.spark.lazy import SparkSession

CURRENT: Mapping[str, str] = {
    "iceberg": "SELECT snapshot_id FROM {}.history ORDER BY made_current_at DESC LIMIT 1",
    "delta": "DESCRIBE HISTORY {} LIMIT 1",
}
"""By format, the query whose first cell is the current version of a table."""


def current_version(spark: SparkSession, table: str) -> str:
    """The current version of a table, for `VERSION AS OF`.

    Empty where its format has no versions, or it has no rows yet.
    """
    query = CURRENT.get(_format(spark, table))
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
