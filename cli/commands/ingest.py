"""`adapt ingest`: turn a raw keyed stream into a trace."""

from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.groups import short_help
from adapt.cli.options.mapping import GivenOptions, typed_of
from adapt.cli.options.result import TraceOutput
from adapt.cli.options.source import CleaningOptions, FormatOptions, MappingOptions, TableOptions, TopicOptions
from adapt.cli.options.spark import Spark
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.stages import stages
from adapt.core.errors import Interrupted, UsageError, listed
from adapt.traces.locations.location import TOPIC_SCHEME

if TYPE_CHECKING:
    from adapt.traces.ingest.ingest import Ingested

READING = tuple(field.name for group in (MappingOptions, FormatOptions, CleaningOptions) for field in fields(group))
"""Options that a mapping file may give too."""


@short_help(
    *("out", "key", "time", "cost", "cost_unit", "bytes_", "stream", "format", "dedup", "mapping", "force", "help")
)
def ingest(
    context: typer.Context,
    *,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="Files, folders, globs, URIs such as s3://BUCKET/IN, - for stdin, or kafka://HOST:PORT/TOPIC.",
        ),
    ] = None,
    output: TraceOutput,
    mapping: MappingOptions,
    form: FormatOptions,
    cleaning: CleaningOptions,
    table: TableOptions,
    topic: TopicOptions,
    spark: Spark,
) -> "Ingested":
    """Turn a raw keyed stream into a trace sorted by time.

    Rows that cannot be read are set aside with file, line and reason. The trace is written atomically.

    Example: adapt ingest access.log --key host --bytes bytes -o web.trace
    """
    options, files = spark.options(), sources or []
    read = table.sources(files)
    values = {**asdict(mapping), **asdict(form), **asdict(cleaning)}
    given = GivenOptions.over_file(values, typed_of(context, READING), mapping.mapping)
    if str(read[0]).startswith(TOPIC_SCHEME):
        given = given.of_topic()
    if not (given.streams or given.values["key"]):
        raise UsageError(f"--key is required: the column or expression that partitions the stream{_columns_of(files)}")
    from adapt.traces.ingest.ingest import ingest as ingest_files
    from adapt.traces.ingest.ingest import topic_folder

    try:
        with stages() as progress:
            ingested = ingest_files(
                read,
                output.out,
                given.mapping,
                replace(given.options, topic=topic.values),
                force=output.force,
                spark_options=options,
                command=command_line(),
                progress=progress,
            )
    except KeyboardInterrupt as stopped:
        kept = topic_folder(output.out)
        if not kept.exists():
            raise
        raise Interrupted(
            f"interrupted; {kept} has the records so far, and the same command goes on from there"
        ) from stopped
    output.show(ingested)
    return ingested


def _columns_of(sources: list[str]) -> str:
    """End of a message that lists the columns of the source, where they are known."""
    from adapt.traces.sources.reading.files import STDIN
    from adapt.traces.sources.sniff import offered_columns

    piped = any(isinstance(each, str) and each == STDIN for each in sources)
    return "" if piped or not sources else f"; available: {listed(offered_columns(sources))}"
