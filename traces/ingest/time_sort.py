"""Order of rows by time, in a trace and in its source."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.lint.source_order import MOST_ROWS, source_evidence
from adapt.traces.locations.location import is_stored
from adapt.traces.parts import part_name, part_writer, write_in_tasks
from adapt.traces.sources.reading.blocks import PLACE
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, F
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import spark_failures
from adapt.traces.store import disk
from adapt.traces.store.trace import ROW_GROUP_ROWS

ORDER = ("ts", "_file", "_line")
"""A total order, since no two rows share a line of a file."""

ONCE = "_once"

BOUNDS_ACCURACY = 100
"""Parts differ in size by about one part in this many."""


_LINE_BITS = 40

Bound: TypeAlias = tuple[int, int | None]
"""A time in microseconds, and the last place at that time: a file and a line in one number; None for all places."""


@dataclass(frozen=True, slots=True)
class Stock:
    """Rows to be sorted."""

    kept: int  # number of good rows
    refused: dict[str, int]  # number of rejected rows by reason
    bounds: tuple[Bound, ...]  # last row of each part but the last, rising; only times that fill a part have places


def take_stock(rows: DataFrame, parts: int, progress: Progress) -> Stock:
    """Count good and rejected rows, and find times for equal parts."""
    shares = [at / parts for at in range(1, parts)]
    bounds = (
        F.percentile_approx(F.unix_micros("ts"), F.array(*map(F.lit, shares)), parts * BOUNDS_ACCURACY)
        if shares
        else F.array().cast("array<bigint>")
    )
    with spark_failures("reading the source"), watched(rows.sparkSession, "counting rows", progress):
        told = rows.groupBy("_reason").agg(F.count(F.lit(1)), bounds).collect()
    counts = {row[0]: int(row[1]) for row in told}
    times = Counter(int(bound) for row in told if row[0] is None for bound in row[2])
    hot = {time: met for time, met in times.items() if met > 1}
    within = _places_within(rows, hot, progress) if hot else {}
    cuts: list[Bound] = [(time, None) for time in times if time not in within]
    cuts += [(time, place) for time, places in within.items() for place in places]
    return Stock(counts.pop(None, 0), counts, tuple(sorted(cuts)))


def _places_within(rows: DataFrame, hot: Mapping[int, int], progress: Progress) -> dict[int, set[int]]:
    """Places that cut each hot time into equal parts, one more than it has bounds."""
    most = max(hot.values())
    shares = [at / (most + 1) for at in range(1, most + 1)]
    time, place = F.unix_micros("ts"), F.shiftleft(F.col("_file").cast("bigint"), _LINE_BITS) + F.col("_line")
    places = F.percentile_approx(place, F.array(*map(F.lit, shares)), most * BOUNDS_ACCURACY)
    at_hot = rows.where("_reason is null").where(time.isin(*hot))
    with spark_failures("reading the source"), watched(rows.sparkSession, "counting rows", progress):
        told = at_hot.groupBy(time).agg(places).collect()
    return {
        int(row[0]): {row[1][(at + 1) * (most + 1) // (hot[row[0]] + 1) - 1] for at in range(hot[row[0]])}
        for row in told
    }


def write_in_order(rows: DataFrame, stock: Stock, folder: Path, progress: Progress, *, timed: bool) -> None:
    """Write the good rows as parts, numbered in time order.

    Args:
        timed: Whether they keep their times.
    """
    bounds, in_store = stock.bounds, is_stored(folder)
    # a nondeterministic column keeps Spark from evaluating the expressions again for each use
    kept = rows.withColumn(ONCE, F.monotonically_increasing_id()).where("_reason is null")
    apart = kept.repartitionById(len(bounds) + 1, _part_of(bounds, 0)) if bounds else kept.coalesce(1)
    names = [quoted(name) for name in rows.columns if name not in PLACE and (timed or name != "ts")]
    written = folder / "_sorted"
    with spark_failures("sorting by time"), watched(rows.sparkSession, "sorting by time", progress):
        ordered = apart.sortWithinPartitions(*ORDER, ONCE).select(*names)
        if in_store:
            _check_same(stock.kept, write_in_tasks(ordered, folder, part_writer, "sorting by time"))
            return
        ordered.write.option("parquet.block.row.count.limit", ROW_GROUP_ROWS).parquet(str(written))
    sizes = {path: pq.read_metadata(path).num_rows for path in sorted(written.glob("part-*"))}
    _check_same(stock.kept, sum(sizes.values()))
    for number, path in enumerate(path for path, size in sizes.items() if size):
        disk.rename(path, folder / part_name(number))
    disk.remove_tree(written)


def _check_same(kept: int, written: int) -> None:
    """Check that as many rows were written as were found to be good."""
    if written != kept:
        raise BadInput(
            f"{kept:,} rows were good at first, but {written:,} when written: an expression changes its result (rand()"
            " or uuid()?); use one that depends only on the row"
        )


def _part_of(bounds: Sequence[Bound], first: int) -> Column:
    """Number of bounds before a row, plus `first`, as a nested expression of binary search."""
    if not bounds:
        return F.lit(first)
    middle = len(bounds) // 2
    before = _part_of(bounds[:middle], first)
    after = _part_of(bounds[middle + 1 :], first + middle + 1)
    return F.when(_up_to(*bounds[middle]), before).otherwise(after)


def _up_to(time_us: int, place: int | None) -> Column:
    """Whether a row is at most a bound."""
    time = F.unix_micros("ts")
    if place is None:
        return time <= F.lit(time_us)
    file, line = place >> _LINE_BITS, place & (1 << _LINE_BITS) - 1
    in_file = (F.col("_file") < file) | ((F.col("_file") == file) & (F.col("_line") <= line))
    return (time < F.lit(time_us)) | ((time == F.lit(time_us)) & in_file)


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
    return source_evidence(*(_numbers(told.column(name)) for name in ("_file", "_line", "time", "key")))


def lines_looked_at(files: int) -> int:
    """How many first lines of each file are examined: `MOST_ROWS` in all."""
    return max(1, MOST_ROWS // files)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(column.to_numpy(), np.int64)
