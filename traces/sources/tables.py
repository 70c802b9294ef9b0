"""Tables of a catalog, their versions, and SQL queries as sources."""

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.traces.sources.reading.records import quoted_name
from adapt.traces.spark.lazy import DataFrame, SparkSession
from adapt.traces.spark.session import first_sentence, spark_failures

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


@dataclass(frozen=True, slots=True)
class Query:
    """A table of a catalog, or an SQL query."""

    table: str = ""  # its name, such as `catalog.db.events`; empty for a query
    sql: str = ""  # one query in Spark SQL; empty for a table
    version: str = ""  # the snapshot or version of the table to read; empty for the current one

    @property
    def name(self) -> str:
        """What messages and `_path` call it."""
        return self.table or "query"

    def pinned(self, spark: SparkSession) -> "Query":
        """The same at the current version of its table, if any."""
        if not self.table or self.version:
            return self
        with spark_failures(f"--table {self.table}"):
            return replace(self, version=current_version(spark, self.table))

    def opened(self, spark: SparkSession) -> DataFrame:
        """Its rows; nothing is read yet."""
        from pyspark.errors import AnalysisException, ParseException

        option = f"--table {self.table}" if self.table else "--sql"
        with spark_failures(option):
            try:
                # only a query parses in these brackets
                rows = f"(\n{self.sql.strip().rstrip(';')}\n)"
                if self.version:
                    rows = f"{self.table} VERSION AS OF {self.version}"
                current = self.table and not self.version
                frame = spark.table(self.table) if current else spark.sql(f"SELECT * FROM {rows}")
                names = frame.columns
            except ParseException as error:
                wanted = "a name such as catalog.db.events" if self.table else "one query, such as SELECT"
                raise UsageError(f"{option}: {first_sentence(str(error))}; it takes {wanted}") from error
            except AnalysisException as error:
                told = error.getMessageParameters() or {}
                if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
                    raise _not_there(spark, option, told["relationName"]) from error
                if error.getCondition() == "REQUIRES_SINGLE_PART_NAMESPACE":
                    catalog = _parts(told["identifier"])[0]
                    setting = f"--spark-conf spark.sql.catalog.{catalog}=CLASS"
                    raise BadInput(f"{option}: there is no catalog {catalog}; name its class by {setting}") from error
                raise
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise BadInput(f"{option} has two columns {twice[0]!r}; rename one in --sql with AS")
        return frame


def _parts(quoted: str) -> list[str]:
    """The parts of a name in backticks."""
    return [part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)+)`", quoted)]


def _not_there(spark: SparkSession, option: str, name: str) -> BadInput:
    """That a table is not there, with the tables of its database."""
    from pyspark.errors import AnalysisException

    parts = _parts(name)
    database = ".".join(map(quoted_name, parts[:-1]))
    try:
        known = [row.tableName for row in spark.sql(f"SHOW TABLES{' IN ' if database else ''}{database}").collect()]
    except AnalysisException:
        remedy = "write it as CATALOG.DB.TABLE, and name its catalog by --spark-conf spark.sql.catalog.CATALOG=CLASS"
        return BadInput(f"{option}: there is no table {'.'.join(parts)}, nor a database {database}; {remedy}")
    others = did_you_mean(parts[-1], known) if known else "; write it as DB.TABLE, with its database"
    return BadInput(f"{option}: there is no table {'.'.join(parts)}{others}")
