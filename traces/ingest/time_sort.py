"""Putting the rows of a source in time order: taking stock of them, then writing them as parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.traces.ingest.finalize import part_name
from adapt.traces.sources.reading.blocks import PLACE
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, F
from adapt.traces.spark.progress import Progress, watched
from adapt.traces.spark.session import spark_failures
from adapt.traces.store import disk
from adapt.traces.store.trace import ROW_GROUP_ROWS

ORDER = ("ts", "_file", "_line")
"""A total order: no two rows stand on one line of one file."""

ONCE = "_once"

BOUNDS_ACCURACY = 100
"""Parts differ in size by about one in this many."""


@dataclass(frozen=True, slots=True)
class Stock:
    """What there is to be put in order.

    Attributes:
        kept: Rows without a reason against them.
        refused: How many were refused for each reason.
        bounds_us: The last time of each part but the last, in microseconds, rising; rows of one time stay together.
    """

    kept: int
    refused: dict[str, int]
    bounds_us: tuple[int, ...]


def take_stock(rows: DataFrame, parts: int, progress: Progress) -> Stock:
    """Count rows by the reason against them, and find the times at which to cut the kept ones into equal parts."""
    shares = [at / parts for at in range(1, parts)]
    bounds = (
        F.percentile_approx(F.unix_micros("ts"), F.array(*map(F.lit, shares)), parts * BOUNDS_ACCURACY)
        if shares
        else F.array().cast("array<bigint>")
    )
    with spark_failures("reading the source"), watched(rows.sparkSession, "taking stock", progress):
        told = rows.groupBy("_reason").agg(F.count(F.lit(1)), bounds).collect()
    counts = {row[0]: int(row[1]) for row in told}
    bounds_us = {int(bound) for row in told if row[0] is None for bound in row[2]}
    return Stock(counts.pop(None, 0), counts, tuple(sorted(bounds_us)))


def write_in_order(rows: DataFrame, stock: Stock, folder: Path, progress: Progress) -> None:
    """Write the rows without a reason against them as parts, numbered in time order.

    Raises:
        BadInput: they are not as many as were in stock: an expression gives another result each time.
    """
    bounds_us = stock.bounds_us
    # a column that cannot be worked out twice keeps Spark from evaluating the expressions again for each use of them
    kept = rows.withColumn(ONCE, F.monotonically_increasing_id()).where("_reason is null")
    part = _part_of(F.unix_micros("ts"), bounds_us, 0)
    apart = kept.repartitionById(len(bounds_us) + 1, part) if bounds_us else kept.coalesce(1)
    names = [quoted(name) for name in rows.columns if name not in PLACE]
    written = folder / "_sorted"
    with spark_failures("sorting by time"), watched(rows.sparkSession, "sorting by time", progress):
        writer = apart.sortWithinPartitions(*ORDER, ONCE).select(*names).write
        writer.option("parquet.block.row.count.limit", ROW_GROUP_ROWS).parquet(str(written))
    sizes = {path: pq.read_metadata(path).num_rows for path in sorted(written.glob("part-*"))}
    if sum(sizes.values()) != stock.kept:
        raise BadInput(
            f"{stock.kept:,} rows were good at first and {sum(sizes.values()):,} when they were written: an expression"
            " gives another result each time (rand(), uuid()?); use one that depends on the row alone"
        )
    for number, path in enumerate(path for path, size in sizes.items() if size):
        disk.rename(path, folder / part_name(number))
    disk.remove_tree(written)


def _part_of(time_us: Column, bounds_us: Sequence[int], first: int) -> Column:
    """How many bounds lie before a time, plus `first`: found by halving, as an expression of that depth."""
    if not bounds_us:
        return F.lit(first)
    middle = len(bounds_us) // 2
    before = _part_of(time_us, bounds_us[:middle], first)
    after = _part_of(time_us, bounds_us[middle + 1 :], first + middle + 1)
    return F.when(time_us <= F.lit(bounds_us[middle]), before).otherwise(after)
