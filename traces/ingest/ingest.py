"""Ingest: a raw keyed stream becomes a trace, in time order, whole or not at all; what does not fit is kept aside.

Passes over the data, each a Spark job. *Staging* takes the source's records apart, once; every row keeps its
file and line. *Stock-taking* evaluates the user's expressions, counts what they refuse, and finds where in time to cut
the trace into parts. *Looking at the order* sees how the first rows stand in the source. *Sorting* puts the rows in
the order (time, file, line), which is total, so that the result does not depend on how Spark splits the work.
*Profiling* reads the finished parts.
"""

from collections.abc import Mapping as Conf
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from adapt.core.errors import BadInput, UsageError
from adapt.traces.ingest.cleaning import Treatment, salt_of, treated
from adapt.traces.ingest.finalize import KeySample, settle
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.rejects import MaxRejects, set_aside
from adapt.traces.ingest.source_order import order_of_source
from adapt.traces.ingest.streams import Settled, Several, Stream, grouped, only_stream
from adapt.traces.ingest.time_sort import take_stock, write_in_order
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.sniff import ReadOptions
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.spark.session import Spark, SparkOptions, session_in_zone, spark_session
from adapt.traces.store import disk
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.rejects import Rejects
from adapt.traces.store.trace import Trace, open_trace
from adapt.traces.store.trace_tables import trace_tables

ROWS_A_PART = 1 << 20
"""A part holds about this many rows, unless --conf spark.sql.shuffle.partitions says how many parts there are."""

MOST_PARTS = 256
"""A longer trace has larger parts: where a row belongs is an expression that grows with their number."""

PARTS_SETTING = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How a source is read and cleaned.

    Attributes:
        reading: What is known of the source's format.
        time_zone: The zone of times that carry none.
        max_rejects: More refused rows than this refuse the whole.
        treatment: What to repair, and what to hide or leave out.
        streams: In place of mapping, reading and time zone: several streams, each with its own.
        salt: Of hashed keys, where several traces are to have the same; a new one if not given. It is kept nowhere.
    """

    reading: ReadOptions = ReadOptions()  # noqa: RUF009 - frozen
    time_zone: str = "UTC"
    max_rejects: MaxRejects = MaxRejects()  # noqa: RUF009 - frozen
    treatment: Treatment = Treatment()  # noqa: RUF009 - frozen
    streams: Sequence[Stream] = ()
    salt: str | None = field(default=None, repr=False)


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

    def _repr_html_(self) -> str:
        """The trace, for a notebook."""
        return "".join(table._repr_html_() for table in trace_tables(self.trace))


def ingest(
    sources: Sequence[str],
    out: Path,
    mapping: Mapping,
    options: IngestOptions | None = None,
    *,
    force: bool = False,
    spark_options: Spark = None,
    command: str = "adapt.traces.ingest.ingest",
    progress: Progress = silent,
) -> Ingested:
    """Turn raw files into a trace.

    Args:
        sources: Files, folders and globs, or `-` for standard input; ties in time go by this order, then by position in
            the file.
        mapping: Which columns or expressions give key, time, cost, bytes and stream.

    Raises:
        UsageError: an option does not fit the source.
        BadInput: the source is empty, damaged, or has too many bad rows.
        EnvironmentFailure: `out` is taken or cannot be written, or there is no Java.
    """
    options, running = options or IngestOptions(), spark_options or SparkOptions()
    treatment, salted = options.treatment, salt_of(options.salt)
    stated = _stated_parts(running.conf)
    with whole_folder(out, force=force) as folder:
        kept, staging = folder / "_stdin", folder / "_staging"
        files = source_files(sources, kept)
        groups = grouped(files, options.streams or only_stream(mapping, options.reading, options.time_zone))
        spark = session_in_zone(spark_session(running), options.time_zone)
        disk.make_folder(staging)
        source = Several(spark, groups, staging, progress)
        rows = treated(source.mapped(), treatment, salted, progress)
        parts = stated or min(MOST_PARTS, max(1, -(-source.rows // ROWS_A_PART)))
        stock = take_stock(rows, parts, progress)
        order = order_of_source(rows, len(files), progress)
        rejects = set_aside(spark, rows, stock.refused, source, folder, progress, withheld=treatment.hash_keys)
        left_out = source.rows - stock.kept - rejects.rows
        if left_out and treatment.sample == 1 and source.announced:
            raise BadInput(
                f"{', '.join(sources)}: {source.rows:,} rows are announced and {stock.kept + rejects.rows:,} were"
                " read: the source is damaged, or changes while it is read"
            )
        _check_rows(stock.kept, left_out, rejects, options.max_rejects, sources)
        write_in_order(rows, stock, folder, progress)
        for passing in (kept, staging):
            if passing.exists():
                disk.remove_tree(passing)
        told = {"treatment": treatment.as_data()} if treatment.as_data() else {}
        used = {**_as_used(source.settled), "guesses": source.guesses, **told}
        made = Provenance(command, used, source.inputs)
        sample = KeySample(float(treatment.sample), left_out) if treatment.sample < 1 else None
        settle(folder, made, rejects, lambda written: written.profiled(spark, progress), order, sample)
    return Ingested(open_trace(out), rejects, source.guesses)


def _as_used(settled: Sequence[Settled]) -> dict[str, object]:
    """How the streams were read, as the manifest tells it."""
    if len(settled) == 1 and not settled[0].stream.name:
        stream, form = settled[0].stream, settled[0].form
        return {
            "mapping": asdict(stream.mapping),
            "reading": asdict(stream.reading),
            "time_format": form.name,
            "time_zone": stream.time_zone,
        }
    return {"streams": [each.as_data() for each in settled]}


def _check_rows(rows: int, left_out: int, rejects: Rejects, limit: MaxRejects, sources: Sequence[str]) -> None:
    where = ", ".join(sources)
    if rows + left_out + rejects.rows == 0:
        raise BadInput(f"{where}: the input has no rows")
    if rows == 0 and left_out:
        raise BadInput(f"{where}: --sample-keys leaves none of {left_out:,} rows; take a larger share of keys")
    if rows == 0:
        raise BadInput(f"{where}: all {rejects.rows:,} rows are refused: {rejects.sentence()}")
    if limit.exceeded(rejects.rows, rows + left_out + rejects.rows):
        raise BadInput(
            f"{where}: {rejects.rows:,} of {rows + left_out + rejects.rows:,} rows are refused, more than"
            f" --max-rejects allows: {rejects.sentence()}"
        )


def _stated_parts(conf: Conf[str, str]) -> int | None:
    """How many parts to cut the trace into, if that was said."""
    stated = conf.get(PARTS_SETTING)
    if stated is None:
        return None
    if not (stated.isascii() and stated.isdigit() and int(stated) > 0):
        raise UsageError(f"--conf {PARTS_SETTING}={stated}: it is a number of parts, 1 or more")
    return int(stated)
