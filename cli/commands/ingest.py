"""`adapt ingest`: a raw keyed stream becomes a trace."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.generator import GeneratorOptions
from adapt.cli.options.groups import option, setting, short_help
from adapt.cli.options.mapping import GivenOptions
from adapt.cli.options.result import ForceOption
from adapt.cli.options.source import CleaningOptions, FormatOptions, MappingOptions
from adapt.cli.options.spark import Spark
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import Format, narrate, narrate_written, show
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.ingest.ingest import Ingested

OF_BOTH = ("cost", "bytes_")
OF_GENERATING = tuple(field.name for field in fields(GeneratorOptions) if field.name != "generate")
OF_READING = tuple(
    field.name
    for group in (MappingOptions, FormatOptions, CleaningOptions)
    for field in fields(group)
    if field.name not in OF_BOTH
)


@short_help(
    "out", "key", "time", "cost", "bytes_", "stream", "format", "mapping", "unique", "generate", "force", "help"
)
def ingest(
    context: typer.Context,
    *,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...", help="Files, folders, globs, or - for stdin; gz, bz2, zst, xz and zip are unpacked."
        ),
    ] = None,
    out: Annotated[Path, option("Where the trace appears.", "TRACE", "--out", "-o")],
    mapping: MappingOptions,
    form: FormatOptions,
    cleaning: CleaningOptions,
    generating: GeneratorOptions,
    spark: Spark,
    force: ForceOption = False,
    json: bool = setting(False, "Print the result as one JSON document.", None, "--json"),
) -> None:
    """Turn a raw keyed stream into a trace, sorted by time.

    Rows that do not fit are kept aside, with file, line and reason. The trace appears whole or not at all.

    Example: adapt ingest access.log --format clf --key host --bytes bytes -o web.trace
    """
    options = spark.options()
    if generating.generate is not None:
        if foreign := [*(sources or ())[:1], *_typed_of(context, OF_READING).values()]:
            raise UsageError(f"--generate {generating.generate} makes a trace and reads none: leave {foreign[0]!r} out")
        from adapt.traces.generators.generate import generate

        typed = _typed_of(context, (*OF_GENERATING, *OF_BOTH))
        with stages() as progress:
            stream = generating.stream(generating.generate, mapping, typed)
            made = generate(stream, out, force=force, spark_options=options, command=command_line(), progress=progress)
        _tell(made, out, json=json)
        return
    if not sources:
        raise UsageError("give SOURCE, what to read (files, folders, globs), or --generate NAME")
    if foreign := [*_typed_of(context, OF_GENERATING).values()]:
        raise UsageError(f"{foreign[0]} goes with --generate; leave it out where {sources[0]!r} is read")
    given = {**asdict(mapping), **asdict(form), **asdict(cleaning)}
    told = GivenOptions.over_file(given, _typed_of(context, (*OF_READING, *OF_BOTH)), mapping.mapping)
    if not (told.streams or told.values["key"]):
        raise UsageError(f"--key is needed: the column or expression that parts the stream{_columns_of(sources)}")
    from adapt.traces.ingest.ingest import ingest as ingest_files

    with stages() as progress:
        ingested = ingest_files(
            sources,
            out,
            told.mapping,
            told.options,
            force=force,
            spark_options=options,
            command=command_line(),
            progress=progress,
        )
    _tell(ingested, out, json=json)


def _typed_of(context: typer.Context, names: Sequence[str]) -> dict[str, str]:
    """The options that were typed, among those of these parameters, by parameter."""
    parameters = (parameter for parameter in context.command.params if parameter.name in names)
    sources = ((parameter, context.get_parameter_source(str(parameter.name))) for parameter in parameters)
    return {
        str(parameter.name): parameter.opts[0]
        for parameter, source in sources
        if source is not None and source.name == "COMMANDLINE"
    }


def _columns_of(sources: list[str]) -> str:
    """The columns there are to choose from, where that can be told."""
    from adapt.traces.sources.reading.files import source_files
    from adapt.traces.sources.reading.stdin import STDIN
    from adapt.traces.sources.sniff import ReadOptions, recognise

    if STDIN in sources:
        return ""
    form = recognise(source_files(sources), ReadOptions()).form
    columns = getattr(form, "columns", ())
    return f" (columns: {', '.join(columns)})" if columns and not columns[0].startswith("_line") else ""


def _tell(ingested: "Ingested", out: Path, *, json: bool) -> None:
    """Say what was made, what was guessed and refused, and what is worth knowing of it."""
    from adapt.core.lint.findings import judged
    from adapt.traces.store.trace_tables import overview, refused, rejects_of, trace_document

    if ingested.guesses:
        narrate(f"guessed: {', '.join(ingested.guesses)}")
    trace, rejects = ingested.trace, rejects_of(ingested.trace)
    if rejects.rows * 100 > trace.rows + rejects.rows:
        share = rejects.rows / (trace.rows + rejects.rows)
        narrate(f"warning: {share:.1%} of all rows were refused: {rejects.sentence()}")
    narrate_written(out)
    for finding in judged(trace.profile) or ():
        narrate(f"lint: {finding.line}")
    tables = [overview(trace), *([refused(trace)] if rejects.rows else [])]
    show(tables, Format.JSON if json else Format.TABLE, trace_document(trace))
