"""Options of `adapt ingest`: columns, source format, cleaning and sharing."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapt.cli.options.completion import columns
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.traces.sources.names import FormatName, KeyFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapt.traces.sources.live.address import TopicOptions as Topic

CLEANING_PANEL = "Cleaning"
SHARING_PANEL = "Sharing a trace"


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """Which column or expression becomes which column of the trace."""

    PANEL: ClassVar[str] = "Columns (a source column, or a Spark SQL expression over them and _path)"
    key: str = setting(
        "", "Key that partitions the stream: a column or expression, or several as A,B.", "EXPR", completion=columns
    )
    time: str = setting("", "Event time (default: guessed).", "EXPR", completion=columns)
    cost: str = setting("", "Processing cost of a row; see --cost-unit.", "EXPR", completion=columns)
    cost_unit: str = setting(
        "",
        "What 1 in the cost column means: us, ms, s, ns, or a duration such as 2.5ms."
        " Read from a column name that ends in _us, _ms, _s or _ns.",
        "UNIT",
    )
    bytes_: str = setting("", "Size of a row in bytes.", "EXPR", "--bytes", completion=columns)
    stream: str = setting("", "Stream that a row belongs to, if the source has several.", "EXPR", completion=columns)
    partition: str = setting(
        "",
        "Partition of the topic that a row lies in (default: known in dumps of a topic with --key key).",
        "EXPR",
        completion=columns,
    )
    keep: list[str] | None = setting(
        None, "Keep a column in the trace, or NAME=EXPR; repeatable.", "COLUMN", completion=columns
    )
    dedup: str = setting(
        "",
        "Deduplicate by this expression, keeping the first row; * compares all columns of the trace.",
        "EXPR",
        completion=columns,
    )
    mapping: Path | None = setting(
        None,
        "Read these options from a file, which may also describe several streams."
        " Options on the command line override it.",
        "FILE.toml",
    )
    time_format: str = setting(
        "",
        "Time format: iso, epoch_s, epoch_ms, epoch_us, epoch_ns, syslog:YEAR, a pattern (default: guessed)."
        " YEAR is of the first line; a pattern looks like dd.MM.yyyy HH:mm:ss.",
        "FORMAT",
    )
    time_zone: str = setting("UTC", "Time zone of times without one.", "ZONE")


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Format of the source."""

    PANEL: ClassVar[str] = "Source format"
    format: FormatName = setting(FormatName.AUTO, "Format of the source.", None, "--source-format", "--format")
    pattern: str = setting("", "For text: a regular expression with named groups.", "REGEX")
    properties: list[str] | None = setting(
        None,
        "Property of kafka-console-consumer, such as print.key=true; repeatable. Others are guessed.",
        "NAME=VALUE",
        "--property",
    )
    delimiter: str = setting("", "Field delimiter (default: guessed).", "CHAR")
    quote: str = setting('"', "Quoting character; '' if fields are not quoted.", "CHAR")
    header: bool | None = setting(None, "Whether the first line names the columns (default: guessed).")
    columns: str = setting("", "Column names, in place of a header.", "NAME,NAME")


@dataclass(frozen=True, slots=True)
class RawOptions:
    """How a raw source is read."""

    source_format: FormatName = setting(FormatName.AUTO, "Format of the source.")
    max_rejects: str = setting("1%", "Fail if more rows of the source than this were rejected.", "ROWS|P%")
    count: str = setting("", "Column of counts by key; or which metric (default: guessed).", "NAME")
    keys: int | None = setting(None, "Number of keys, where a source has metrics alone.", "N")
    join_with: str = setting("", "Judge Spark's join with this input: files, a table or a trace.", "SOURCE")
    right_key: str = setting("", "Key of --join-with, if named differently.", "A,B", needs="join-with")


@dataclass(frozen=True, slots=True)
class TableOptions:
    """A table or a query in place of files."""

    PANEL: ClassVar[str] = "Tables that Spark reads (catalogs by --spark-conf)"
    table: str = setting("", "Read a table of a Spark catalog, in place of files.", "CATALOG.DB.TABLE")
    sql: str = setting("", "Read the rows of this Spark SQL query, in place of files.", "QUERY")

    @property
    def is_given(self) -> bool:
        """Whether a table or query is the source."""
        return bool(self.table or self.sql)

    def sources(self, files: "Sequence[Any]") -> "Sequence[Any]":
        """Files that were given, or a table or query."""
        if bool(files) + bool(self.table) + bool(self.sql) != 1:
            raise UsageError("give either SOURCE (files, globs, a topic), --table or --sql")
        if files:
            return files
        from adapt.traces.sources.frames import Query

        return [Query(self.table, self.sql)]


@dataclass(frozen=True, slots=True)
class CleaningOptions:
    """How rows are cleaned, rejected, hidden or sampled."""

    shift_clock: list[str] | None = setting(
        None,
        "Shift the clock of streams: 'fxcm:*=5h' forward, 'east=-2s' back; repeatable.",
        "STREAMS=DURATION",
        panel=CLEANING_PANEL,
    )
    max_lateness: str = setting(
        "", "Reject rows whose time is further behind an earlier row of their file.", "30s", panel=CLEANING_PANEL
    )
    max_rejects: str = setting("100%", "Fail if more rows than this are rejected.", "ROWS|P%", panel=CLEANING_PANEL)
    hash_keys: bool = setting(
        False,
        "Replace keys by salted hashes. The salt is random, or $ADAPT_SALT, and never stored.",
        None,
        "--hash-keys",
        panel=SHARING_PANEL,
    )
    sample_keys: str = setting(
        "100%", "Keep all rows of this share of the keys, always the same keys.", "P%", panel=SHARING_PANEL
    )


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """Which records of a topic are read."""

    PANEL: ClassVar[str] = "Topics (kafka://HOST:PORT/TOPIC)"
    begin: str = setting("", "Read from this time: ISO 8601, or a duration before now such as 6h.", "TIME", "--since")
    end: str = setting("", "Read up to this time (default: the end of the topic at the start).", "TIME", "--until")
    sample: str = setting("100%", "Read this share of the records, in runs spread over all offsets.", "P%")
    max_records: int | None = setting(None, "Read at most this many records, shared out over the partitions.", "N")
    client_config: Path | None = setting(
        None, "Properties of the Kafka client, such as those of SASL and TLS; they are kept nowhere.", "FILE"
    )
    key_format: KeyFormat = setting(
        KeyFormat.AUTO, "How keys were written; confluent is its wire format, with a schema id (default: guessed)."
    )

    @property
    def values(self) -> "Topic":
        """The options for the library."""
        from adapt.traces.ingest.cleaning import parse_sample
        from adapt.traces.sources.live.address import TopicOptions as Topic

        share = parse_sample("--sample", self.sample)
        return Topic(self.begin, self.end, share, self.max_records, self.client_config, self.key_format)
