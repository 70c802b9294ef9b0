"""Ingest: a raw keyed stream becomes a trace, in time order, whole or not at all; what does not fit is kept aside.

Three passes over the data, each a Spark job. *Staging* reads the source once, takes its records apart and evaluates the
user's expressions; every row keeps its file and line. *Sorting* puts the staged rows in the order (time, file, line),
which is total, so that the result does not depend on how Spark splits the work. *Profiling* reads the finished parts.
"""

from collections.abc import Mapping as Conf
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from adapt.core.errors import BadInput, UsageError
from adapt.traces.artefacts import disk
from adapt.traces.artefacts.manifest import Provenance
from adapt.traces.artefacts.trace import ROW_GROUP_ROWS, Trace, open_trace
from adapt.traces.artefacts.whole import check_free, whole_folder
from adapt.traces.mapping import Mapping, chosen_time, mapped, settled_format
from adapt.traces.progress import Progress, silent, watched
from adapt.traces.rejects import MaxRejects, Rejects, set_aside
from adapt.traces.session import SparkOptions, literal_path, session_in_zone, spark_failures, spark_session
from adapt.traces.settle import part_name, settle
from adapt.traces.sources.files import source_files
from adapt.traces.sources.sniff import ReadOptions, recognise
from adapt.traces.sources.source import Source
from adapt.traces.times import TimeFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_A_PART = 4 << 20
"""A part holds about this many rows, unless --conf spark.sql.shuffle.partitions says how many parts there are."""

PARTS_SETTING = "spark.sql.shuffle.partitions"

SAMPLE_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Ingested:
    """What an ingest did.

    Attributes:
        trace: The new trace.
        rejects: What was refused; the rows themselves lie in the trace's `_rejects/`.
        guesses: What was not said and had to be guessed, in words.
    """

    trace: Trace
    rejects: Rejects
    guesses: tuple[str, ...]


def ingest(
    sources: Sequence[str],
    out: Path,
    mapping: Mapping,
    *,
    reading: ReadOptions | None = None,
    time_zone: str = "UTC",
    max_rejects: MaxRejects | None = None,
    force: bool = False,
    spark_options: SparkOptions | None = None,
    command: str = "adapt.traces.ingest",
    progress: Progress = silent,
) -> Ingested:
    """Turn raw files into a trace.

    Args:
        sources: Files, folders and globs; ties in time go by this order, then by position in the file.
        out: Where the trace appears, whole, at the end.
        mapping: Which columns or expressions give key, time, cost, bytes and stream.
        reading: What is known of the source's format.
        time_zone: The zone of times that carry none.
        max_rejects: More refused rows than this refuse the whole.
        force: Replace an artefact at `out`.
        command: What the manifest says made the trace.

    Raises:
        UsageError: an option does not fit the source.
        BadInput: the source is empty, damaged, or has too many bad rows.
        EnvironmentFailure: `out` is taken or cannot be written, or there is no Java.
    """
    check_free(out, force=force)
    reading = reading or ReadOptions()
    files = source_files(sources)
    recognised = recognise(files, reading)
    options = spark_options or SparkOptions()
    stated = _stated_parts(options.conf)
    spark = session_in_zone(spark_session(options), time_zone)
    with whole_folder(out, force=force) as folder:
        source = Source(spark, files, recognised.form, progress)
        mapping, form, guesses = _settled(source, mapping)
        staging = folder / "_staging"
        staged = _stage(source, mapping, form, staging, progress)
        rejects = set_aside(spark, staged, source, folder, progress)
        rows = staged.where("_reason is null").count()
        _check_rows(rows, rejects, max_rejects or MaxRejects(), sources)
        _sort(staged, folder, stated or max(1, -(-rows // ROWS_A_PART)), progress)
        disk.remove_tree(staging)
        guesses = (*recognised.guesses, *guesses)
        made = Provenance(
            command,
            {
                "mapping": asdict(mapping),
                "reading": asdict(reading),
                "time_format": form.name,
                "time_zone": time_zone,
                "guesses": guesses,
            },
            source.inputs,
        )
        settle(spark, folder, made, rejects, progress)
    return Ingested(open_trace(out), rejects, guesses)


def _settled(source: Source, mapping: Mapping) -> tuple[Mapping, TimeFormat, tuple[str, ...]]:
    """The mapping with its time column and format settled, and what of that was guessed."""
    guesses = []
    if not mapping.time:
        mapping = replace(mapping, time=chosen_time(source.columns))
        guesses.append(f"time from {mapping.time}")
    sample = source.frame(mapping.wanted(source.columns)).where("_reason is null").limit(SAMPLE_ROWS)
    form = settled_format(mapping, sample, source.columns)
    if form.guessed:
        guesses.append(f"time format {form.name}")
    return mapping, form, tuple(guesses)


def _stage(source: Source, mapping: Mapping, form: TimeFormat, staging: Path, progress: Progress) -> "DataFrame":
    """Evaluate the expressions over every row and write the rows down, each with its place and reason."""
    frame = mapped(source.frame(mapping.wanted(source.columns)), mapping, form, source.columns)
    with spark_failures("reading the source"), watched(frame.sparkSession, "reading", progress):
        frame.write.parquet(str(staging))
        return frame.sparkSession.read.schema(frame.schema).parquet(literal_path(staging))


def _check_rows(rows: int, rejects: Rejects, limit: MaxRejects, sources: Sequence[str]) -> None:
    where = ", ".join(sources)
    if rows + rejects.rows == 0:
        raise BadInput(f"{where}: the input has no rows")
    if rows == 0:
        raise BadInput(f"{where}: all {rejects.rows:,} rows are refused: {rejects.sentence()}")
    if limit.exceeded(rejects.rows, rows + rejects.rows):
        raise BadInput(
            f"{where}: {rejects.rows:,} of {rows + rejects.rows:,} rows are refused, more than --max-rejects allows: "
            f"{rejects.sentence()}"
        )


def _sort(staged: "DataFrame", folder: Path, parts: int, progress: Progress) -> None:
    """Write the kept rows in time order, ties by file and line, as parts numbered in that order."""
    order = ("ts", "_file", "_line")
    kept = staged.where("_reason is null")
    apart = kept.coalesce(1) if parts == 1 else kept.repartitionByRange(parts, *order)
    names = [name for name in staged.columns if name not in ("_file", "_line", "_reason", "_text")]
    written = folder / "_sorted"
    with spark_failures("sorting by time"), watched(staged.sparkSession, "sorting by time", progress):
        writer = apart.sortWithinPartitions(*order).select(*(f"`{name}`" for name in names)).write
        writer.option("parquet.block.row.count.limit", ROW_GROUP_ROWS).parquet(str(written))
    full = [part for part in sorted(written.glob("part-*")) if pq.read_metadata(part).num_rows]
    for number, part in enumerate(full):
        disk.rename(part, folder / part_name(number))
    disk.remove_tree(written)


def _stated_parts(conf: Conf[str, str]) -> int | None:
    """How many parts to cut the trace into, if that was said."""
    stated = conf.get(PARTS_SETTING)
    if stated is None:
        return None
    if not (stated.isascii() and stated.isdigit() and int(stated) > 0):
        raise UsageError(f"--conf {PARTS_SETTING}={stated}: it is a number of parts, 1 or more")
    return int(stated)
