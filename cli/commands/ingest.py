"""`adapt ingest`: a raw keyed stream becomes a trace."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.common import ConfOption, ForceOption, MasterOption, command_line, spark_options
from adapt.cli.options.mapping import Told
from adapt.cli.terminal.output import Format, narrate, narrate_written, show
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError
from adapt.core.stream import KeyType
from adapt.core.units.durations import duration_us
from adapt.traces.generators.names import GeneratorName
from adapt.traces.sources.names import FormatName

if TYPE_CHECKING:
    from adapt.traces.store.trace import Trace

MAPPING_PANEL = "What is what (each a column, or a Spark SQL expression over columns and _path)"
SOURCE_PANEL = "How the source is written"
REPAIR_PANEL = "Repairs"
SHARE_PANEL = "To share a trace"
GENERATE_PANEL = "Synthetic traces"

OF_GENERATING = (
    *("rows", "domain", "exponent", "hot", "rate", "start", "key_type", "seed"),
    *("diurnal", "day", "bursts", "burst_every", "burst_for", "streams", "lag", "drift", "drift_share", "key_life"),
)
OF_BOTH = ("cost", "bytes_")
OF_READING = (
    *("key", "time", "stream", "keep", "unique", "time_format", "time_zone"),
    *("mapping", "clock", "most_late", "hash_keys", "sample_keys"),
    *("format", "pattern", "kcat_format", "delimiter", "quote", "header", "columns", "max_rejects"),
)


def ingest(
    context: typer.Context,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...", help="Files, folders, globs, or - for stdin; gz, bz2, zst, xz and zip are unpacked."
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="TRACE", help="Where the trace appears.")],
    key: Annotated[
        str, typer.Option("--key", metavar="EXPR", help="The partitioning key.", rich_help_panel=MAPPING_PANEL)
    ] = "",
    time: Annotated[
        str,
        typer.Option(
            "--time", metavar="EXPR", help="When it happened; guessed if left out.", rich_help_panel=MAPPING_PANEL
        ),
    ] = "",
    cost: Annotated[
        str,
        typer.Option(
            "--cost",
            metavar="EXPR",
            help="What processing it costs, in microseconds; with --generate a distribution: constant(5),"
            " uniform(1, 9), exponential(100), lognormal(100, 0.5), pareto(10, 1.5).",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = "",
    bytes_: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="EXPR",
            help="Its size in bytes; with --generate a distribution.",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = "",
    stream: Annotated[
        str,
        typer.Option(
            "--stream", metavar="EXPR", help="Which of several streams it is of.", rich_help_panel=MAPPING_PANEL
        ),
    ] = "",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="COLUMN", help="Carry a column along; repeatable.", rich_help_panel=MAPPING_PANEL
        ),
    ] = None,
    unique: Annotated[
        str,
        typer.Option(
            "--unique",
            metavar="EXPR",
            help="Rows alike in this are one: the first in the source; * for all that the trace keeps of a row.",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = "",
    mapping: Annotated[
        Path | None,
        typer.Option(
            "--mapping",
            metavar="FILE.toml",
            help="These options in a file, and several streams each in its own way; what is typed wins.",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = None,
    time_format: Annotated[
        str,
        typer.Option(
            "--time-format",
            metavar="FORMAT",
            help="iso, epoch_s, epoch_ms, epoch_us, epoch_ns or a pattern as dd.MM.yyyy HH:mm:ss; guessed if left out.",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = "",
    time_zone: Annotated[
        str,
        typer.Option(
            "--time-zone", metavar="ZONE", help="Zone of times that carry none.", rich_help_panel=MAPPING_PANEL
        ),
    ] = "UTC",
    format: Annotated[
        FormatName, typer.Option("--format", help="The source's format.", rich_help_panel=SOURCE_PANEL)
    ] = FormatName.AUTO,
    pattern: Annotated[
        str,
        typer.Option(
            "--pattern",
            metavar="REGEX",
            help="For text: a regular expression with named groups.",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = "",
    kcat_format: Annotated[
        str,
        typer.Option(
            "--kcat-format",
            metavar="FORMAT",
            help=r"For kcat: what kcat -f was given, as '%T %p %o %k %s\n'; its -J needs none.",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = "",
    delimiter: Annotated[
        str,
        typer.Option(
            "--delimiter", metavar="CHAR", help="Between fields; guessed if left out.", rich_help_panel=SOURCE_PANEL
        ),
    ] = "",
    quote: Annotated[
        str, typer.Option("--quote", metavar="CHAR", help="Around fields; '' for none.", rich_help_panel=SOURCE_PANEL)
    ] = '"',
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line names the columns.", rich_help_panel=SOURCE_PANEL
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option("--columns", metavar="NAME,NAME", help="Names of the columns.", rich_help_panel=SOURCE_PANEL)
    ] = "",
    clock: Annotated[
        list[str] | None,
        typer.Option(
            "--clock",
            metavar="STREAMS=LENGTH",
            help="Set the clock of streams forward: 'fxcm:*=5h', or back: 'east=-2s'; repeatable.",
            rich_help_panel=REPAIR_PANEL,
        ),
    ] = None,
    most_late: Annotated[
        str,
        typer.Option(
            "--most-late",
            metavar="LENGTH",
            help="Refuse rows whose time is further behind that of a row before them in their file.",
            rich_help_panel=REPAIR_PANEL,
        ),
    ] = "",
    hash_keys: Annotated[
        bool,
        typer.Option(
            "--hash-keys",
            help="Replace keys by salted hashes. The salt is new each time, or $ADAPT_SALT, and kept nowhere.",
            rich_help_panel=SHARE_PANEL,
        ),
    ] = False,
    sample_keys: Annotated[
        str,
        typer.Option(
            "--sample-keys",
            metavar="P%",
            help="Keep the rows of this share of the keys: all rows of each, always the same keys.",
            rich_help_panel=SHARE_PANEL,
        ),
    ] = "100%",
    max_rejects: Annotated[
        str, typer.Option("--max-rejects", metavar="N|P%", help="Refuse all if more rows than this are bad.")
    ] = "100%",
    force: ForceOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")] = False,
    generate: Annotated[
        GeneratorName | None,
        typer.Option(
            "--generate", help="Make a synthetic trace instead of reading one.", rich_help_panel=GENERATE_PANEL
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", help="Rows to make.", rich_help_panel=GENERATE_PANEL)
    ] = 1_000_000,
    domain: Annotated[
        int,
        typer.Option(
            "--domain",
            metavar="N",
            help="Distinct keys to draw from; users of clicks (20000 if left out), items of sales (3000).",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1_000_000,
    exponent: Annotated[
        float,
        typer.Option(
            "--exponent",
            metavar="Z",
            help="Zipf's z: 0 is uniform; 0.8 for clicks if left out.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1.0,
    hot: Annotated[
        float,
        typer.Option(
            "--hot",
            metavar="SHARE",
            help="Of self-similar keys, the share that has all rows but this share.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 0.2,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            metavar="R",
            help="Rows a second; 0.05 for clicks if left out, 0.5 for sales.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1000.0,
    start: Annotated[
        str,
        typer.Option(
            "--start", metavar="TIME", help="Time of the first row, ISO 8601, UTC.", rich_help_panel=GENERATE_PANEL
        ),
    ] = "2026-01-01T00:00:00",
    key_type: Annotated[
        KeyType, typer.Option("--key-type", help="Type of the keys: string or int64.", rich_help_panel=GENERATE_PANEL)
    ] = KeyType.STRING,
    diurnal: Annotated[
        float,
        typer.Option(
            "--diurnal",
            metavar="SWING",
            help="The rate swings by this share of its average, 0 to 1, over every day.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 0.0,
    day: Annotated[
        str,
        typer.Option(
            "--day",
            metavar="LENGTH",
            help="How long such a day is; its trough is its start.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = "24h",
    bursts: Annotated[
        float,
        typer.Option(
            "--bursts",
            metavar="FACTOR",
            help="Bursts with so many times the rate between them (Markov-modulated).",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1.0,
    burst_every: Annotated[
        str,
        typer.Option(
            "--burst-every", metavar="LENGTH", help="Mean pause between bursts.", rich_help_panel=GENERATE_PANEL
        ),
    ] = "10m",
    burst_for: Annotated[
        str,
        typer.Option("--burst-for", metavar="LENGTH", help="Mean length of a burst.", rich_help_panel=GENERATE_PANEL),
    ] = "1m",
    streams: Annotated[
        int,
        typer.Option(
            "--streams",
            metavar="N",
            help="Part the rows into streams s1, s2 and so on.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 1,
    lag: Annotated[
        str,
        typer.Option(
            "--lag",
            metavar="LENGTH",
            help="By how much the ups and downs of each stream follow those of the one before.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = "0",
    drift: Annotated[
        str,
        typer.Option(
            "--drift",
            metavar="LENGTH",
            help="After each such time heavy keys change their ranks.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = "0",
    drift_share: Annotated[
        float,
        typer.Option(
            "--drift-share",
            metavar="SHARE",
            help="How many of the 4,096 heaviest ranks then do.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = 0.1,
    key_life: Annotated[
        str,
        typer.Option(
            "--key-life",
            metavar="LENGTH",
            help="How long a key lives before a fresh one takes its rank.",
            rich_help_panel=GENERATE_PANEL,
        ),
    ] = "0",
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of all chance.", rich_help_panel=GENERATE_PANEL)
    ] = 0,
    master: MasterOption = "local[*]",
    conf: ConfOption = [],  # noqa: B006 - typer makes a new list
) -> None:
    """Turn a raw keyed stream into a trace, sorted by time.

    Rows that do not fit are kept aside, with file, line and reason. The trace appears whole or not at all.

    Example: adapt ingest access.log --format clf --key host --bytes bytes -o web.trace
    """
    given = dict(locals())
    options = spark_options(master, conf)
    if generate is not None:
        if foreign := [*(sources or ())[:1], *_typed_of(context, OF_READING).values()]:
            raise UsageError(f"--generate {generate} makes a trace and reads none: leave {foreign[0]!r} out")
        from adapt.cli.options.generator import check_taken, taken_of, variation_of
        from adapt.traces.generators.registry import GENERATORS

        typed = _typed_of(context, (*OF_GENERATING, *OF_BOTH))
        generator = GENERATORS[generate]
        check_taken(generator, generate, typed)
        # What was not typed is left to the generator, which has its own idea of it.
        values = {name: given[name] for name in OF_GENERATING if name in typed} | {"rows": rows}
        values |= {"rate_per_s": rate} if "rate" in typed else {}
        with stages() as progress:
            made = generator(
                out,
                **taken_of(generator, values | {"variation": variation_of(given, typed)}),
                force=force,
                spark_options=options,
                command=command_line(),
                progress=progress,
            )
        _tell(made.trace, out, json=json)
        return
    if not sources:
        raise UsageError("give SOURCE, what to read (files, folders, globs), or --generate NAME")
    if foreign := [*_typed_of(context, OF_GENERATING).values()]:
        raise UsageError(f"{foreign[0]} goes with --generate; leave it out where {sources[0]!r} is read")
    told = Told.of(given, _typed_of(context, (*OF_READING, *OF_BOTH)), mapping)
    chosen, parted = told.values, told.streams_of_file
    if not (parted or chosen["key"]):
        raise UsageError(f"--key is needed: the column or expression that parts the stream{_columns_of(sources)}")
    from adapt.traces.ingest.cleaning import Clock, Treatment, parse_sample
    from adapt.traces.ingest.ingest import ingest as ingest_files
    from adapt.traces.ingest.rejects import MaxRejects

    with stages() as progress:
        ingested = ingest_files(
            sources,
            out,
            told.mapping,
            reading=told.reading,
            time_zone=chosen["time_zone"],
            streams=parted,
            max_rejects=MaxRejects.parse(chosen["max_rejects"]),
            treatment=Treatment(
                tuple(Clock.parse(text) for text in told.clocks),
                duration_us(chosen["most_late"]) if chosen["most_late"] else None,
                chosen["hash_keys"],
                parse_sample(chosen["sample_keys"]),
            ),
            salt=os.environ.get("ADAPT_SALT"),
            force=force,
            spark_options=options,
            command=command_line(),
            progress=progress,
        )
    _tell(ingested.trace, out, ingested.guesses, json=json)


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


def _tell(trace: "Trace", out: Path, guesses: Sequence[str] = (), *, json: bool) -> None:
    from adapt.core.lint.findings import judged
    from adapt.traces.store.trace_tables import overview, refused, rejects_of, trace_document

    if guesses:
        narrate(f"guessed: {', '.join(guesses)}")
    rejects = rejects_of(trace)
    if rejects.rows * 100 > trace.rows + rejects.rows:
        share = rejects.rows / (trace.rows + rejects.rows)
        narrate(f"warning: {share:.1%} of all rows were refused: {rejects.sentence()}")
    narrate_written(out)
    for finding in judged(trace.profile) or ():
        narrate(f"lint: {finding.line}")
    tables = [overview(trace), *([refused(trace)] if rejects.rows else [])]
    show(tables, Format.JSON if json else Format.TABLE, trace_document(trace))
