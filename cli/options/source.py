"""Options of `adapt ingest` on a source: which column is what, how it is written, what is repaired and hidden."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from adapt.cli.options.groups import setting
from adapt.traces.sources.names import FormatName

REPAIR_PANEL = "Repairs"
SHARE_PANEL = "To share a trace"


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """Which column or expression is what."""

    PANEL: ClassVar[str] = "What is what (each a column, or a Spark SQL expression over columns and _path)"
    key: str = setting("", "The partitioning key.", "EXPR")
    time: str = setting("", "When it happened; guessed if left out.", "EXPR")
    cost: str = setting(
        "",
        "What processing it costs, in microseconds; with --generate a distribution: constant(5),"
        " uniform(1, 9), exponential(100), lognormal(100, 0.5), pareto(10, 1.5).",
        "EXPR",
    )
    bytes_: str = setting("", "Its size in bytes; with --generate a distribution.", "EXPR", "--bytes")
    stream: str = setting("", "Which of several streams it is of.", "EXPR")
    keep: list[str] | None = setting(None, "Carry a column along; repeatable.", "COLUMN")
    unique: str = setting(
        "", "Rows alike in this are one: the first in the source; * for all that the trace keeps of a row.", "EXPR"
    )
    mapping: Path | None = setting(
        None, "These options in a file, and several streams each in its own way; what is typed wins.", "FILE.toml"
    )
    time_format: str = setting(
        "",
        "iso, epoch_s, epoch_ms, epoch_us, epoch_ns or a pattern as dd.MM.yyyy HH:mm:ss; guessed if left out.",
        "FORMAT",
    )
    time_zone: str = setting("UTC", "Zone of times that carry none.", "ZONE")


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """How the source is written."""

    PANEL: ClassVar[str] = "How the source is written"
    format: FormatName = setting(FormatName.AUTO, "The source's format.")
    pattern: str = setting("", "For text: a regular expression with named groups.", "REGEX")
    kcat_format: str = setting(
        "", r"For kcat: what kcat -f was given, as '%T %p %o %k %s\n'; its -J needs none.", "FORMAT"
    )
    delimiter: str = setting("", "Between fields; guessed if left out.", "CHAR")
    quote: str = setting('"', "Around fields; '' for none.", "CHAR")
    header: bool | None = setting(None, "Whether the first line names the columns.")
    columns: str = setting("", "Names of the columns.", "NAME,NAME")


@dataclass(frozen=True, slots=True)
class CleaningOptions:
    """What is repaired, hidden, left out or refused."""

    clock: list[str] | None = setting(
        None,
        "Set the clock of streams forward: 'fxcm:*=5h', or back: 'east=-2s'; repeatable.",
        "STREAMS=LENGTH",
        panel=REPAIR_PANEL,
    )
    most_late: str = setting(
        "",
        "Refuse rows whose time is further behind that of a row before them in their file.",
        "LENGTH",
        panel=REPAIR_PANEL,
    )
    hash_keys: bool = setting(
        False,
        "Replace keys by salted hashes. The salt is new each time, or $ADAPT_SALT, and kept nowhere.",
        None,
        "--hash-keys",
        panel=SHARE_PANEL,
    )
    sample_keys: str = setting(
        "100%",
        "Keep the rows of this share of the keys: all rows of each, always the same keys.",
        "P%",
        panel=SHARE_PANEL,
    )
    max_rejects: str = setting("100%", "Refuse all if more rows than this are bad.", "N|P%")
