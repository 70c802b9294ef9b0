"""Keys that `adapt verdict` judges, of counts or of a trace."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from adapt.cli.options.artefacts import stream_typed
from adapt.cli.options.mapping import GivenOptions, refuse
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_guesses
from adapt.cli.terminal.output import narrate, narrate_written
from adapt.core.errors import EnvironmentFailure, UsageError
from adapt.traces.locations.location import TOPIC_SCHEME, location
from adapt.traces.sources.names import FormatName

if TYPE_CHECKING:
    from adapt.traces.counting.count_cache import Counted
    from adapt.traces.spark.progress import Progress

OF_COUNTS = {"key", "time", "time_format", "cost", "cost_unit", "bytes_", "max_rejects"}
"""Options of columns that counts may have."""


def counts_of(
    source: Sequence[Any], out: Path, given: GivenOptions, count: str, spark: RunnerOptions, *, force: bool
) -> "Counted | None":
    """Keys of a table of counts; None for rows.

    Args:
        out: File of the counts of a query, to be kept.
    """
    from adapt.traces.counting.count_cache import counted, of_table
    from adapt.traces.counting.counts_table import count_column, has_counts, read_counts
    from adapt.traces.sources.frames import Query, is_frame
    from adapt.traces.spark.session import session_in_zone, spark_session
    from adapt.traces.store.atomic import check_free, write_whole
    from adapt.traces.store.manifest import is_trace
    from adapt.traces.store.tables import packed

    table, typed = source[0], given.typed
    if isinstance(table, Query):
        table = table.opened(session_in_zone(spark_session(spark.options()), given.values["time_zone"]))
    kept = isinstance(table, str) and is_trace(Path(table), "frequencies")
    if len(source) > 1 or given.streams:
        return None
    if not (kept or count or has_counts(table, given.mapping)):
        if (is_frame(table) or Path(table).is_file()) and (named := count_column(table)):
            narrate(f"read as rows; if column {named} holds the count of each row, add --count {quote(named)}")
        return None
    refuse(typed - ({"max_rejects"} if kept else OF_COUNTS), f"{name_of(source[0])} holds counts")
    if kept:
        return counted(Path(table))
    if isinstance(source[0], Query):
        check_free(out, force=force)
        write_whole(out, packed(table.toArrow()), force=force)
        narrate_written(out)
        table = str(out)
    return of_table(read_counts(table if is_frame(table) else Path(table), mapping=given.mapping, count=count))


def kept_trace(
    source: Sequence[Any],
    out: Path | None,
    given: GivenOptions,
    spark: RunnerOptions,
    progress: "Progress",
    *,
    force: bool,
) -> Path:
    """The trace of a source: itself, a kept or a new one."""
    from adapt.traces.ingest.ingest import ingest
    from adapt.traces.kept_trace import holds, remember, source_fingerprint
    from adapt.traces.series import traces_of
    from adapt.traces.store.trace import open_trace

    is_path = isinstance(source[0], str)
    is_topic = is_path and source[0].startswith(TOPIC_SCHEME)
    places = [] if is_topic or not is_path else [location(each) for each in source]
    if places and all(map(traces_of, places)):
        names = [*(given.typed - {"max_rejects"}), *(["out"] if out is not None else [])]
        names += [] if given.values["format"] is FormatName.AUTO else ["source_format"]
        refuse(names, f"{source[0]} is a trace", "omit it, or give a raw file")
        return stream_typed(places)
    given = given.of_topic() if is_topic else given
    if not (given.streams or given.values["key"]):
        raise UsageError("--key is required for a raw source: the column or expression that partitions the stream")
    path = out or Path(f"{stem_of(name_of(source[0]))}.trace")
    salt = given.options.salt if given.values["hash_keys"] else None
    made_by = {**given.values, "streams": given.streams, "salt": salt}
    decisive = {name: str(value) for name, value in made_by.items() if name != "max_rejects"}
    fingerprint = None if is_topic or not is_path else source_fingerprint(source, decisive)
    if fingerprint is not None and holds(path, fingerprint):
        narrate(f"using {path}, made from this source before")
        narrate_guesses(open_trace(path).reading.guesses)
        return path
    if (is_topic or not is_path) and path.exists() and not force:
        what = "a topic has new records" if is_topic else "a table may have new rows"
        raise EnvironmentFailure(f"{path} exists, and {what}; give the trace, or use --force or -o")
    if path.exists() and not force:
        raise EnvironmentFailure(f"{path} was made from another source, or with other options; use --force or -o TRACE")
    made = ingest(
        source,
        path,
        given.mapping,
        given.options,
        force=force,
        spark_options=spark.options(),
        command=command_line(),
        progress=progress,
    )
    narrate_guesses(made.guesses)
    narrate_written(path)
    if fingerprint is not None:
        remember(path, fingerprint)
    return path


def name_of(source: Any) -> str:
    """A source, as typed."""
    from adapt.traces.sources.frames import frame_name, is_frame

    return frame_name(source) if is_frame(source) else str(source)


def stem_of(source: str) -> str:
    """The name of a source without folder and endings."""
    name = Path(source).name.split(".")[0].strip("*?[]")
    return name or "stream"
