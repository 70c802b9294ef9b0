"""Order of the rows in the source, from its first lines."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.lint.source_order import MOST_ROWS, source_evidence
from adapt.traces.spark.lazy import DataFrame, F
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import spark_failures


def order_of_source(rows: DataFrame, files: int, progress: Progress) -> dict[str, Any] | None:
    """Evidence on the order of the good rows; see `source_evidence`.

    Uses the first lines of each file, so that the result does not depend on how Spark splits the work.

    Args:
        rows: Columns of the trace, with `_file`, `_line` and `_reason`.
        files: Number of files.
    """
    looked_at = rows.where((F.col("_line") <= lines_looked_at(files)) & (F.col("_file") < MOST_ROWS))
    facts = looked_at.where("_reason is null").select(
        F.col("_file").cast("bigint"),
        F.col("_line").cast("bigint"),
        F.unix_micros("ts").alias("time"),
        F.xxhash64("key").alias("key"),
    )
    with spark_failures("reading the source"), watched(rows.sparkSession, "checking the order", progress):
        told = facts.toArrow()
    return evidence_of(*(told.column(name) for name in ("_file", "_line", "time", "key")))


def lines_looked_at(files: int) -> int:
    """How many first lines of each file are examined: `MOST_ROWS` in all."""
    return max(1, MOST_ROWS // files)


def evidence_of(
    file: pa.ChunkedArray, line: pa.ChunkedArray, time_us: pa.ChunkedArray, key: pa.ChunkedArray
) -> dict[str, Any] | None:
    """As `source_evidence`, of int64 columns."""
    return source_evidence(_numbers(file), _numbers(line), _numbers(time_us), _numbers(key))


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(column.to_numpy(), np.int64)
