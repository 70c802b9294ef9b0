"""Text lines parsed by a regular expression; log formats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import UsageError
from adapt.traces.sources.reading.records import Bytes, OfLines, Parsed, Records, chosen_by, line_records, text_of

LOG_FORMAT = (
    r"^(?P<host>\S+) (?P<ident>\S+) (?P<user>\S+) \[(?P<time>[^\]]+)\] "
    r'"(?P<method>[^\s"]*) ?(?P<path>.*?)(?: (?P<protocol>HTTP/[\d.]+))?" '
    r"(?P<status>\d{3}|-) (?P<bytes>\d+|-)"
    r'(?: "(?P<referrer>.*?)" "(?P<agent>.*)")?\s*$'
)
"""A line of the Common Log Format, or of the Combined one with referrer and agent."""

LOG_MISSING = dict.fromkeys(("ident", "user", "status", "bytes", "referrer", "agent"), "-")
"""Log fields in which `-` means null."""


@dataclass(frozen=True, slots=True)
class Pattern(OfLines):
    """Lines that match a regular expression (RE2) with named groups."""

    pattern: str  # the expression; other lines are rejected
    columns: tuple[str, ...]  # its named groups, in order
    missing: Mapping[str, str] = field(default_factory=dict)  # text that is read as null, by column
    what: str = "does not match the pattern"  # reason to reject a line
    times: Mapping[str, str] = field(default_factory=dict)  # times, partitions: see `RecordFormat`
    partitions: Mapping[str, str] = field(default_factory=dict)
    only: str = ""  # beginning of the lines that are records; empty for all

    def records(self, data: Bytes, *, at_end: bool) -> Records:
        """Lines."""
        return chosen_by(self.only, data, line_records(data, at_end=at_end), wanted=True)

    def parse(self, data: Bytes, records: Records, wanted: Sequence[str]) -> Parsed:
        """Wanted groups of each line."""
        groups = pc.extract_regex(text_of(data, records), self.pattern)
        matched = groups.is_valid()
        columns = {}
        for name in wanted:
            column = pc.if_else(matched, groups.field(name), None)
            if name in self.missing:
                column = pc.if_else(pc.equal(column, self.missing[name]), None, column)
            columns[name] = column.cast(pa.string())
        if pc.all(matched).as_py() in (True, None):
            return Parsed(columns)
        return Parsed(columns, pc.if_else(matched, pa.scalar(None, pa.string()), self.what))


def pattern_format(pattern: str) -> Pattern:
    """The format of a user's regular expression."""
    try:
        groups = pc.extract_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        raise UsageError(f"--pattern does not compile: {str(error).splitlines()[0]}") from error
    columns = tuple(field.name for field in groups.type)
    if not columns:
        raise UsageError("--pattern must have a named group for each column, such as (?P<user>\\S+)")
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise UsageError(f"--pattern has two groups named {twice[0]!r}; names must differ")
    return Pattern(pattern, columns)


def log_format() -> Pattern:
    """Common and Combined Log Formats."""
    names = tuple(field.name for field in pc.extract_regex(pa.array([""]), LOG_FORMAT).type)
    return Pattern(LOG_FORMAT, names, LOG_MISSING, "not a line of the Common or Combined Log Format")
