"""Ingest: turn a raw keyed stream into a trace.

Each pass over the data is a Spark job. *Staging* parses the records once; every row keeps its file and line. *Sorting*
orders rows by (time, file, line), a total order, so that the result does not depend on how Spark splits the work.

Small sources: this process does all passes on one table; Spark at most evaluates the expressions.

Large sources: staging puts the rows whose values are written plainly into sorted runs; one job *maps* the others, which
need Spark SQL, into runs and rejects; *merging* cuts all runs at exact ranks, and writes and profiles the parts.

Sources for which Spark settings state the number of parts, or the master: *stock-taking* evaluates the expressions,
counts rejected rows, and finds the times at which to cut the trace into parts; *looking at the order* samples the order
of the first rows; Spark sorts; *profiling* reads the finished parts.
"""

import re
from collections.abc import Mapping as Conf
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput, UsageError
from adapt.core.reading import FOLDER, Reading, Rejects
from adapt.core.stream import KeyType
from adapt.core.table import Displayed, Table
from adapt.traces.ingest.cleaning import Cleaning, cleaned, salt_of
from adapt.traces.ingest.mapping import Mapping, check_word, key_parts, selected
from adapt.traces.ingest.profile import Profile, settle
from adapt.traces.ingest.rejects import WITHHELD, MaxRejects, by_file, by_reason, set_aside
from adapt.traces.ingest.runs import RunWriter, merge_runs, order_of_runs, runs_of
from adapt.traces.ingest.sieve import PLACES, value_of, with_places
from adapt.traces.ingest.sifting import Sifted, schema_of, sifted
from adapt.traces.ingest.streams import Settled, Several, Stream, grouped, only_stream
from adapt.traces.ingest.time_sort import (
    Stock,
    order_of_source,
    take_stock,
    write_in_order,
)
from adapt.traces.locations.location import is_stored
from adapt.traces.parts import part_name, plain_writer
from adapt.traces.sources.formats.parquet import ParquetFiles
from adapt.traces.sources.frames import (
    Query,
    frame_name,
    frame_opened,
    frame_schema,
    is_frame,
    is_spark_frame,
    keep_frame,
)
from adapt.traces.sources.live.address import TopicOptions, topic_of
from adapt.traces.sources.live.topic import KeptTopic, read_topic
from adapt.traces.sources.live.topic_records import TopicRecords
from adapt.traces.sources.reading.blocks import PATH, PLACE
from adapt.traces.sources.reading.files import SourceFile, source_files, unchanged
from adapt.traces.sources.reading.records import InDoubt, field_paths
from adapt.traces.sources.reading.table_files import StoredTables, arrow_type_in_spark, as_spark_schema, stored_tables
from adapt.traces.sources.sniff import ReadOptions, Recognized
from adapt.traces.spark.lazy import DataFrame, F, Later, SparkSession
from adapt.traces.spark.progress import Progress, silent, watched
from adapt.traces.spark.session import (
    SMALL_BYTES,
    Spark,
    SparkOptions,
    session_in_zone,
    shares_disk,
    spark_failures,
    spark_session,
)
from adapt.traces.store import disk
from adapt.traces.store.atomic import whole_folder
from adapt.traces.store.manifest import Provenance
from adapt.traces.store.trace import ROW_GROUP_ROWS, Trace, open_trace, trace_tables


def _held(rows: DataFrame, folder: Path, progress: Progress) -> Sifted | None:
    """The rows of a small source as runs, evaluated by Spark in one go; None if only Spark can write them."""
    with spark_failures("reading the source"), watched(rows.sparkSession, "reading", progress):
        table = rows.toArrow()
    schema = schema_of(table.drop(list(PLACE)).schema)
    if schema is None:
        return None
    kept = table.filter(pc.field("_reason").is_null()).select([*PLACES, *schema.names]).cast(with_places(schema))
    runs = RunWriter(folder, "held", 0, mixed=True)
    for batch in kept.to_batches():
        runs.add(batch)
    runs.close()
    refused = table.filter(pc.field("_reason").is_valid())
    return Sifted(Stock(len(kept), _reasons(refused), ()), runs_of(folder), refused, schema)


def _reasons(rows: pa.Table) -> dict[Any, int]:
    """Rows by reason."""
    return {each["values"]: each["counts"] for each in rows["_reason"].value_counts().to_pylist()}


def _set_aside(refused: pa.Table, counts: Conf[str, int], source: Several, folder: Path, *, withheld: bool) -> Rejects:
    """As `rejects.set_aside`, of refused rows in memory."""
    if not len(refused):
        return Rejects()
    refused = refused.sort_by([("_file", "ascending"), ("_line", "ascending")])
    places = list(zip(refused["_file"].to_pylist(), refused["_line"].to_pylist(), strict=True))
    texts = [WITHHELD] * len(places) if withheld else _texts(places, refused["_text"].to_pylist(), source)
    columns = {
        "file": pa.array([source.files[file].label for file, _ in places]),
        "line": refused["_line"],
        "reason": refused["_reason"],
        "text": pa.array(texts, pa.string()),
    }
    disk.make_folder(folder / FOLDER)
    _write(pa.table(columns), folder / FOLDER / part_name(0))
    return Rejects(len(places), *by_reason(folder / FOLDER, counts))


def _texts(places: Sequence[tuple[int, int]], texts: Sequence[str | None], source: Several) -> list[str]:
    """Text of refused rows; of those that the mapping refused, it is read again."""
    lacking = [place for place, text in zip(places, texts, strict=True) if text is None]
    read: dict[tuple[int, int], str | None] = {}
    if lacking:
        rows = source.texts(by_file(lacking)).to_pydict()
        read = dict(zip(zip(rows["_file"], rows["_line"], strict=True), rows["_text"], strict=True))
    return [text or read.get(place) or "" for place, text in zip(places, texts, strict=True)]


def _write(rows: pa.Table, path: Path) -> None:
    """Write a table as Spark would."""
    with disk.complete_file(path, 0) as own, plain_writer(rows.schema, own) as writer:
        writer.write_table(rows, ROW_GROUP_ROWS)


def frame_of(sources: Sequence[Any]) -> Any:
    """The data frame that is the source, or None."""
    frame = next((each for each in sources if is_frame(each)), None)
    if frame is not None and len(sources) > 1:
        raise UsageError("a data frame must be the only source; concatenate several, or ingest one at a time")
    return frame


def frame_files(frame: Any, folder: Path, streams: Sequence[Stream], spark: SparkSession) -> list[SourceFile]:
    """The columns that expressions may name, as files in a new folder.

    Expressions are checked first, so that a wrong one reads no row. Without a time, all columns are kept to guess it.
    """
    opened = frame.opened(spark) if isinstance(frame, Query) else frame_opened(frame)
    schema = frame_schema(opened)
    known = as_spark_schema(schema)
    options = [each for stream in streams for each in stream.mapping.expressions().items()]
    if not streams[0].name:
        options += [("keep", text) for text in streams[0].mapping.kept(schema.names).values()]
    texts = [text for stream in streams for text in stream.texts]
    named = Mapping("", keep=tuple(texts))
    wanted = [name for name in named.wanted(schema.names) if name in schema.names]
    for name, kind in opened.dtypes if is_spark_frame(opened) else ():
        if name not in schema.names and name in named.wanted([name]):
            raise BadInput(f"{frame_name(frame)}: column {name!r} has type {kind}, which is not read; cast it first")
    if set(wanted) <= set(known.names):
        empty: Any = Later(lambda: spark.createDataFrame([], known).withColumn(PATH, F.lit("")))
        kinds = {name: arrow_type_in_spark(schema.field(name).type) for name in known.names}
        nothing = pa.RecordBatch.from_pylist([], pa.schema({**kinds, PATH: pa.string()}))
        for option, text in options:
            for part in key_parts(text, schema.names) if option == "key" else (text,):
                check_word(part, option, schema.names, field_paths(schema))
                try:
                    value_of(part, nothing)
                except InDoubt:
                    selected(empty, part, option, schema.names, field_paths(schema))
    guessed = any(not stream.mapping.time for stream in streams)
    return keep_frame(opened, frame_name(frame), folder, schema.names if guessed else wanted)


ROWS_A_PART = 1 << 20
"""Approximate rows per part, unless --spark-conf spark.sql.shuffle.partitions sets the number of parts."""

MOST_PARTS = 256
"""Longer traces have larger parts, since the expression for a row's part grows with their number."""

PARTS_SETTING = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How a source is read and cleaned.

    Attributes:
        reading: Format of the source.
        max_rejects: The ingest fails if more rows are rejected.
        cleaning: Cleaning rules.
        topic: Which records of a topic are read, for `kafka://` sources.
    """

    reading: ReadOptions = ReadOptions()  # noqa: RUF009 - frozen
    time_zone: str = "UTC"  # zone of times without one
    max_rejects: MaxRejects = MaxRejects()  # noqa: RUF009 - frozen
    cleaning: Cleaning = Cleaning()  # noqa: RUF009 - frozen
    # several streams, each with its own mapping, reading and time zone, which replace those given here
    streams: Sequence[Stream] = ()
    # salt of hashed keys, for equal keys in several traces; random by default, and never stored
    salt: str | None = field(default=None, repr=False)
    topic: TopicOptions = TopicOptions()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True, repr=False)
class Ingested(Displayed):
    """Result of an ingest."""

    trace: Trace  # the new trace
    rejects: Rejects  # counts of rejected rows; the rows themselves are in the trace's `_rejects/`
    guesses: tuple[str, ...]  # guessed settings, in words
    notes: tuple[str, ...] = ()  # what else a user should know, in words

    def to_arrow(self) -> pa.Table:
        """All rows of the trace, in memory."""
        return self.trace.to_arrow()

    def displayed(self) -> list[Table]:
        """Tables of the trace."""
        return trace_tables(self.trace)


def ingest(
    sources: Sequence[Any],
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
        sources: Files, folders and globs, or `-` for standard input. Rows of equal time keep this order, then their
            order in the file. Or one topic, as `kafka://HOST:PORT/TOPIC`. Or one data frame, as
            `adapt.traces.sources.frames` reads it, or one `Query`.
        mapping: Columns or expressions for key, time, cost, bytes and stream.
    """
    options, running = options or IngestOptions(), spark_options or SparkOptions()
    cleaning, salt = options.cleaning, salt_of(options.salt)
    frame = frame_of(sources)
    sources = sources if frame is None else [frame_name(frame)]
    unordered = isinstance(frame, Query) or is_spark_frame(frame)
    if cleaning.max_lateness_us is not None and unordered:
        raise UsageError("--max-lateness needs rows in order of arrival, but a table or a Spark DataFrame has no order")
    stated, address = _stated_parts(running.conf), topic_of(sources)
    streams = options.streams or only_stream(mapping, options.reading, options.time_zone)
    if address is None and options.topic != TopicOptions():
        raise UsageError(f"options of topics need a source such as kafka://HOST:PORT/TOPIC (got {', '.join(sources)})")
    topic: KeptTopic | None = None
    with whole_folder(out, force=force, local=shares_disk(running)) as folder, ExitStack() as reading:
        staging = folder / "_staging"
        kept = staging / "_kept"  # standard input or a frame
        disk.make_folder(staging)
        if address is not None:
            if is_stored(folder):
                raise UsageError(
                    f"{out}: a topic is read to a disk of this machine, which the workers of --master cannot reach;"
                    " omit --master, or write to a disk that they share"
                )
            texts = [text for stream in streams for text in stream.texts]
            topic = read_topic(address, options.topic, texts, topic_folder(out), options.time_zone, progress)
        files: Sequence[SourceFile]
        form: StoredTables | TopicRecords | None
        if frame is not None:
            started: Any = Later(lambda: session_in_zone(spark_session(running), options.time_zone))
            frame = frame.pinned(started) if isinstance(frame, Query) else frame
            files = frame_files(frame, kept, streams, started)
            form = stored_tables(ParquetFiles(), files)
        elif topic is not None:
            files, form = topic.files, topic.form
        else:
            files, form = source_files(sources, kept), None
        reading.enter_context(unchanged(files))
        groups = grouped(files, streams, None if form is None else Recognized(form))
        small = sum(file.size for file in files) <= SMALL_BYTES
        spark: Any = Later(lambda: session_in_zone(spark_session(running.for_work(small=small)), options.time_zone))
        alone = topic is None and not unordered and not running.on_spark(small=True)
        here, large = small and not running.on_spark(small=small), not small and not stated and not is_stored(folder)
        plain = staging if large and not cleaning.as_data() else None
        held_bytes, ordered = SMALL_BYTES if here else 0, not unordered
        source = Several(spark, groups, staging, progress, plain, held_bytes, ordered=ordered, here=alone)
        own = Path(reading.enter_context(TemporaryDirectory(prefix="adapt-"))) if is_stored(folder) else staging
        runs = _plain(source, own / "_plain") if alone and not stated and not cleaning.as_data() else None
        if runs is None:
            rows = cleaned(source.mapped(), cleaning, salt, progress)
            parts = stated or min(MOST_PARTS, max(1, -(-source.rows // ROWS_A_PART)))
            if large:  # for the windows of cleaning rules
                spark.conf.set(PARTS_SETTING, str(max(parts, int(str(spark.conf.get(PARTS_SETTING))))))
                schema = schema_of(rows.drop(*PLACE).limit(0).toArrow().schema)
                runs = None if schema is None else sifted(rows, schema, source.left, staging, progress)
            elif here and source.rows <= ROWS_A_PART:
                runs = _held(rows, own, progress)
        if runs is not None:
            rows, stock, order = runs.refused, runs.stock, order_of_runs(runs.runs, len(files))
        else:
            stock = take_stock(rows, parts, progress)
            order = order_of_source(rows, len(files), progress)
        here, timed = isinstance(rows, pa.Table), source.timed
        if not timed and (cleaning.clock_shifts or cleaning.max_lateness_us is not None):
            raise UsageError("--shift-clock and --max-lateness need times, and no column has any; give --time")
        aside = _set_aside if here else partial(set_aside, spark, progress=progress)
        rejects = aside(rows, stock.refused, source, folder, withheld=cleaning.hash_keys)
        left_out = source.rows - stock.kept - rejects.rows
        _check_rows(stock.kept, left_out, rejects, options.max_rejects, sources)
        profile: Profile | None = None
        if runs is not None:
            schema = pa.schema([field for field in runs.schema if timed or field.name != "ts"])
            profile = merge_runs(None if here else spark, runs.runs, schema, folder, progress)
        else:
            write_in_order(rows, stock, folder, progress, timed=timed)
        disk.remove_tree(staging)
        rules = {"cleaning": cleaning.as_data()} if cleaning.as_data() else {}
        guesses = source.guesses if topic is None else (*topic.guesses, *source.guesses)
        used = {**_as_used(source.settled), "guesses": guesses, **rules}
        if topic is not None:
            used["topic"] = topic.parameters
        if isinstance(frame, Query):
            used["query"] = asdict(frame)
        made = Provenance(command, used, source.inputs if topic is None else topic.inputs)
        evidence: dict[str, object] = {}
        if order is not None and topic is None and not unordered and timed:  # partitions say nothing of lateness
            evidence["source"] = order
        if cleaning.sample < 1:
            evidence["sample"] = {"share": float(cleaning.sample), "left_out": left_out}
        if source.null_text:
            evidence["null_text"] = source.null_text
        if source.local_times:
            evidence["local_times"] = source.local_times
        if topic is not None and topic.sample_effect is not None:
            evidence["record_sample"] = {
                "share": float(options.topic.share),
                "records": topic.offsets,
                "effect": topic.sample_effect,
            }
        key_type = KeyType.STRING if cleaning.hash_keys else source.key_type
        settle(
            *(folder, made, rejects, lambda written: profile or written.profiled(spark, progress), evidence),
            *(key_type, key_parts(source.settled[0].stream.mapping.key, source.columns)),
        )
    if topic is not None:
        disk.remove_tree(topic.folder)
    trace = open_trace(out)
    return Ingested(trace, rejects, guesses, () if topic is None else tuple(topic.notes))


def _plain(source: Several, folder: Path) -> Sifted | None:
    """The rows of a source as runs, made without Spark; None if something needs Spark."""
    folder.mkdir()
    found = source.plain(folder)
    if found is None:
        disk.remove_tree(folder)
        return None
    sieve, refused = found
    return Sifted(Stock(source.rows - len(refused), _reasons(refused), ()), runs_of(folder), refused, sieve.schema)


def topic_folder(out: Path) -> Path:
    """Folder of a topic's records until its trace is complete.

    It is next to the trace, or in the current folder if the trace is in a store.
    """
    return (Path.cwd() / out.name if is_stored(out) else out).with_name(f".{out.name}.topic")


def _as_used(settled: Sequence[Settled]) -> dict[str, object]:
    """How the streams were read, as recorded in the manifest."""
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
        raise BadInput(f"{where} has no rows")
    if rows == 0 and left_out:
        raise BadInput(f"{where}: --sample-keys keeps 0 of {left_out:,} rows; increase it")
    if rows == 0:
        raise BadInput(f"{where}: all {rejects.rows:,} rows were rejected: {rejects.sentence()}{_on_commas(rejects)}")
    limit.check(where, Reading(rows + left_out + rejects.rows, rejects))


def _on_commas(rejects: Rejects) -> str:
    """How decimal commas are read, if they may be why rows were rejected."""
    for reason, examples in rejects.examples.items():
        name = reason.removesuffix(" is not a number")
        if name != reason and any(re.search(r"\d,\d", each["text"]) for each in examples):
            return f"; decimal commas are read by --{name} \"replace(COLUMN, ',', '.')\""
    return ""


def _stated_parts(conf: Conf[str, str]) -> int | None:
    """Number of parts, if the Spark settings state it."""
    stated = conf.get(PARTS_SETTING)
    if stated is None:
        return None
    if not (stated.isascii() and stated.isdigit() and int(stated) > 0):
        raise UsageError(f"--spark-conf {PARTS_SETTING} must be at least 1 (got {stated})")
    return int(stated)
