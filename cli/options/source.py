"""Options of `adapt ingest` on a source: which column is what, how it is written, what is repaired and hidden."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from adapt.cli.options.groups import option
from adapt.traces.sources.names import FormatName

REPAIR_PANEL = "Repairs"
SHARE_PANEL = "To share a trace"


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """Which column or expression is what."""

    PANEL: ClassVar[str] = "What is what (each a column, or a Spark SQL expression over columns and _path)"

    key: Annotated[str, option("The partitioning key.", "EXPR")] = ""
    time: Annotated[str, option("When it happened; guessed if left out.", "EXPR")] = ""
    cost: Annotated[
        str,
        option(
            "What processing it costs, in microseconds; with --generate a distribution: constant(5),"
            " uniform(1, 9), exponential(100), lognormal(100, 0.5), pareto(10, 1.5).",
            "EXPR",
        ),
    ] = ""
    bytes_: Annotated[str, option("Its size in bytes; with --generate a distribution.", "EXPR", "--bytes")] = ""
    stream: Annotated[str, option("Which of several streams it is of.", "EXPR")] = ""
    keep: Annotated[list[str] | None, option("Carry a column along; repeatable.", "COLUMN")] = None
    unique: Annotated[
        str,
        option("Rows alike in this are one: the first in the source; * for all that the trace keeps of a row.", "EXPR"),
    ] = ""
    mapping: Annotated[
        Path | None,
        option("These options in a file, and several streams each in its own way; what is typed wins.", "FILE.toml"),
    ] = None
    time_format: Annotated[
        str,
        option(
            "iso, epoch_s, epoch_ms, epoch_us, epoch_ns or a pattern as dd.MM.yyyy HH:mm:ss; guessed if left out.",
            "FORMAT",
        ),
    ] = ""
    time_zone: Annotated[str, option("Zone of times that carry none.", "ZONE")] = "UTC"


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """How the source is written."""

    PANEL: ClassVar[str] = "How the source is written"

    format: Annotated[FormatName, option("The source's format.")] = FormatName.AUTO
    pattern: Annotated[str, option("For text: a regular expression with named groups.", "REGEX")] = ""
    kcat_format: Annotated[
        str, option(r"For kcat: what kcat -f was given, as '%T %p %o %k %s\n'; its -J needs none.", "FORMAT")
    ] = ""
    delimiter: Annotated[str, option("Between fields; guessed if left out.", "CHAR")] = ""
    quote: Annotated[str, option("Around fields; '' for none.", "CHAR")] = '"'
    header: Annotated[bool | None, option("Whether the first line names the columns.")] = None
    columns: Annotated[str, option("Names of the columns.", "NAME,NAME")] = ""


@dataclass(frozen=True, slots=True)
class CleaningOptions:
    """What is repaired, hidden, left out or refused."""

    clock: Annotated[
        list[str] | None,
        option(
            "Set the clock of streams forward: 'fxcm:*=5h', or back: 'east=-2s'; repeatable.",
            "STREAMS=LENGTH",
            panel=REPAIR_PANEL,
        ),
    ] = None
    most_late: Annotated[
        str,
        option(
            "Refuse rows whose time is further behind that of a row before them in their file.",
            "LENGTH",
            panel=REPAIR_PANEL,
        ),
    ] = ""
    hash_keys: Annotated[
        bool,
        option(
            "Replace keys by salted hashes. The salt is new each time, or $ADAPT_SALT, and kept nowhere.",
            None,
            "--hash-keys",
            panel=SHARE_PANEL,
        ),
    ] = False
    sample_keys: Annotated[
        str,
        option(
            "Keep the rows of this share of the keys: all rows of each, always the same keys.", "P%", panel=SHARE_PANEL
        ),
    ] = "100%"
    max_rejects: Annotated[str, option("Refuse all if more rows than this are bad.", "N|P%")] = "100%"
