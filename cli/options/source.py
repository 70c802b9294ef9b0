"""Options of `adapt ingest` on a source: which column is what, how it is written, what is repaired and hidden."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from adapt.traces.sources.names import FormatName

MAPPING_PANEL = "What is what (each a column, or a Spark SQL expression over columns and _path)"
SOURCE_PANEL = "How the source is written"
REPAIR_PANEL = "Repairs"
SHARE_PANEL = "To share a trace"


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """Which column or expression is what."""

    key: Annotated[
        str, typer.Option("--key", metavar="EXPR", help="The partitioning key.", rich_help_panel=MAPPING_PANEL)
    ] = ""
    time: Annotated[
        str,
        typer.Option(
            "--time", metavar="EXPR", help="When it happened; guessed if left out.", rich_help_panel=MAPPING_PANEL
        ),
    ] = ""
    cost: Annotated[
        str,
        typer.Option(
            "--cost",
            metavar="EXPR",
            help="What processing it costs, in microseconds; with --generate a distribution: constant(5),"
            " uniform(1, 9), exponential(100), lognormal(100, 0.5), pareto(10, 1.5).",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = ""
    bytes_: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="EXPR",
            help="Its size in bytes; with --generate a distribution.",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = ""
    stream: Annotated[
        str,
        typer.Option(
            "--stream", metavar="EXPR", help="Which of several streams it is of.", rich_help_panel=MAPPING_PANEL
        ),
    ] = ""
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="COLUMN", help="Carry a column along; repeatable.", rich_help_panel=MAPPING_PANEL
        ),
    ] = None
    unique: Annotated[
        str,
        typer.Option(
            "--unique",
            metavar="EXPR",
            help="Rows alike in this are one: the first in the source; * for all that the trace keeps of a row.",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = ""
    mapping: Annotated[
        Path | None,
        typer.Option(
            "--mapping",
            metavar="FILE.toml",
            help="These options in a file, and several streams each in its own way; what is typed wins.",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = None
    time_format: Annotated[
        str,
        typer.Option(
            "--time-format",
            metavar="FORMAT",
            help="iso, epoch_s, epoch_ms, epoch_us, epoch_ns or a pattern as dd.MM.yyyy HH:mm:ss; guessed if left out.",
            rich_help_panel=MAPPING_PANEL,
        ),
    ] = ""
    time_zone: Annotated[
        str,
        typer.Option(
            "--time-zone", metavar="ZONE", help="Zone of times that carry none.", rich_help_panel=MAPPING_PANEL
        ),
    ] = "UTC"


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """How the source is written."""

    format: Annotated[
        FormatName, typer.Option("--format", help="The source's format.", rich_help_panel=SOURCE_PANEL)
    ] = FormatName.AUTO
    pattern: Annotated[
        str,
        typer.Option(
            "--pattern",
            metavar="REGEX",
            help="For text: a regular expression with named groups.",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = ""
    kcat_format: Annotated[
        str,
        typer.Option(
            "--kcat-format",
            metavar="FORMAT",
            help=r"For kcat: what kcat -f was given, as '%T %p %o %k %s\n'; its -J needs none.",
            rich_help_panel=SOURCE_PANEL,
        ),
    ] = ""
    delimiter: Annotated[
        str,
        typer.Option(
            "--delimiter", metavar="CHAR", help="Between fields; guessed if left out.", rich_help_panel=SOURCE_PANEL
        ),
    ] = ""
    quote: Annotated[
        str, typer.Option("--quote", metavar="CHAR", help="Around fields; '' for none.", rich_help_panel=SOURCE_PANEL)
    ] = '"'
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line names the columns.", rich_help_panel=SOURCE_PANEL
        ),
    ] = None
    columns: Annotated[
        str, typer.Option("--columns", metavar="NAME,NAME", help="Names of the columns.", rich_help_panel=SOURCE_PANEL)
    ] = ""


@dataclass(frozen=True, slots=True)
class CleaningOptions:
    """What is repaired, hidden, left out or refused."""

    clock: Annotated[
        list[str] | None,
        typer.Option(
            "--clock",
            metavar="STREAMS=LENGTH",
            help="Set the clock of streams forward: 'fxcm:*=5h', or back: 'east=-2s'; repeatable.",
            rich_help_panel=REPAIR_PANEL,
        ),
    ] = None
    most_late: Annotated[
        str,
        typer.Option(
            "--most-late",
            metavar="LENGTH",
            help="Refuse rows whose time is further behind that of a row before them in their file.",
            rich_help_panel=REPAIR_PANEL,
        ),
    ] = ""
    hash_keys: Annotated[
        bool,
        typer.Option(
            "--hash-keys",
            help="Replace keys by salted hashes. The salt is new each time, or $ADAPT_SALT, and kept nowhere.",
            rich_help_panel=SHARE_PANEL,
        ),
    ] = False
    sample_keys: Annotated[
        str,
        typer.Option(
            "--sample-keys",
            metavar="P%",
            help="Keep the rows of this share of the keys: all rows of each, always the same keys.",
            rich_help_panel=SHARE_PANEL,
        ),
    ] = "100%"
    max_rejects: Annotated[
        str, typer.Option("--max-rejects", metavar="N|P%", help="Refuse all if more rows than this are bad.")
    ] = "100%"
