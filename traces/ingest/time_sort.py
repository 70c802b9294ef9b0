"""Time sort: cut a source into parts by time, and sort them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from adapt.core.errors import BadInput
from adapt.traces.ingest.parts import part_name, part_writer, write_in_tasks
from adapt.traces.locations.location import is_stored
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


@dataclass(frozen=True, slots=True)
class Stock:
    """Rows to be sorted.

    Attributes:
        kept: Number of good rows.
        refused: Number of rejected rows by reason.
        bounds_us: Last time of each part but the last, in microseconds, rising; rows of equal time stay together.
    """

    kept: int
    refused: dict[str, int]
    bounds_us: tuple[int, ...]


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
    bounds_us = {int(bound) for row in told if row[0] is None for bound in row[2]}
    return Stock(counts.pop(None, 0), counts, tuple(sorted(bounds_us)))


def write_in_order(rows: DataFrame, stock: Stock, folder: Path, progress: Progress) -> None:
    """Write the good rows as parts, numbered in time order.

    Raises:
        BadInput: their number has changed, so an expression is not deterministic.
    """
    bounds_us, in_store = stock.bounds_us, is_stored(folder)
    # a nondeterministic column keeps Spark from evaluating the expressions again for each use
    kept = rows.withColumn(ONCE, F.monotonically_increasing_id()).where("_reason is null")
    part = _part_of(F.unix_micros("ts"), bounds_us, 0)
    apart = kept.repartitionById(len(bounds_us) + 1, part) if bounds_us else kept.coalesce(1)
    names = [quoted(name) for name in rows.columns if name not in PLACE]
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


def _part_of(time_us: Column, bounds_us: Sequence[int], first: int) -> Column:
    """Number of bounds before a time, plus `first`, as a nested expression of binary search."""
    if not bounds_us:
        return F.lit(first)
    middle = len(bounds_us) // 2
    before = _part_of(time_us, bounds_us[:middle], first)
    after = _part_of(time_us, bounds_us[middle + 1 :], first + middle + 1)
    return F.when(time_us <= F.lit(bounds_us[middle]), before).otherwise(after)
