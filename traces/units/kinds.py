"""What a source of units is, by its first bytes."""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from adapt.core.errors import AdaptError
from adapt.traces.counting.counts_table import ERRORS, TIMES
from adapt.traces.read_errors import readable
from adapt.traces.sources.formats.spark_log import PACKED, is_event_log
from adapt.traces.sources.sniff import offered_columns

SERIES = re.compile(rb'\{\s*"metric"\s*:\s*\{')
"""The beginning of a series of Prometheus."""

GROUPS_HEADER = re.compile(r"^\s*(?:GROUP\s+)?TOPIC\s+PARTITION\s+.*\bOFFSET\b.*\bLAG\b", re.IGNORECASE)
"""The header of `kafka-consumer-groups --describe`; older tools have other columns."""

OFFSETS_LINE = re.compile(r"^([\w.-]+):(\d+):(\d*)\s*$")
"""A line of `kafka-get-offsets`."""

EXPOSED = re.compile(
    r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+([+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|Inf|inf|NaN|nan))"
    r"(?:\s+(-?\d{1,15}(?:\.\d+)?))?\s*(?:#.*)?$"
)
"""A line of Prometheus's text exposition: metric, labels, value, time."""

UNIT_LABELS = (
    *("partition", "subtask_index", "subtask", "shard", "shard_id", "ShardId", "task_id", "task", "unit"),
    *("worker_id", "worker", "fragment_id", "executor", "executor_id", "instance", "pod", "host", "node"),
)
"""Labels that name a unit, the likeliest first."""

VALUES = re.compile(r"value|lag|load|rate|sum|total|counts?|rows|records|messages|events|requests|bytes|busy\w*|size")
"""Usual names of a column of values, in lower case."""

_KEYS = ("host", "node")
"""Labels that are keys in a table, more often than units."""

_MOST_COLUMNS = 5
"""A table with more columns holds rows of a stream."""

_HEAD = 1 << 16
_PAIR = re.compile(rb'"values?"\s*:\s*\[')
_DOCUMENT = re.compile(
    rb'"(?:MetricDataResults|subtasks|vertices|Datapoints)"\s*:\s*\[|^\s*\[\s*\{\s*"id"\s*:\s*"\d+\.'
)


class SourceKind(StrEnum):
    """A kind of source of units."""

    EVENTS = "events"
    ANSWER = "answer"
    EXPOSED = "exposed"
    GROUPS = "groups"
    OFFSETS = "offsets"
    DOCUMENT = "document"
    TABLE = "table"


def kind_of(path: Path, *, tables: bool = True) -> SourceKind | None:
    """The kind of a file or folder.

    None for rows, and for counts by key.

    Args:
        tables: Whether a table may hold units; else it is not looked at.
    """
    if path.is_dir():
        return SourceKind.EVENTS if is_event_log(path) else None
    if not path.is_file():
        return None
    with readable(path), path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith((b'{"Event":', *PACKED)) and is_event_log(path):
        return SourceKind.EVENTS
    if head.lstrip()[:1] in (b"{", b"["):
        if SERIES.search(head) and _PAIR.search(head):
            return SourceKind.ANSWER
        return SourceKind.DOCUMENT if _DOCUMENT.search(head) else None
    lines = head.decode("utf-8", "replace").splitlines()[:40]
    shown = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if any(map(GROUPS_HEADER.match, lines)):
        return SourceKind.GROUPS
    if shown and all(map(OFFSETS_LINE.match, shown[:-1] or shown)):
        return SourceKind.OFFSETS
    if len(shown) > 1 and all(map(EXPOSED.match, shown[:-1])) and any("{" in line for line in shown):
        return SourceKind.EXPOSED
    return SourceKind.TABLE if tables and _is_table(path) else None


def _is_table(path: Path) -> bool:
    """Whether a table has columns of units and values, and little else.

    Errors of counts are of keys.
    """
    try:
        columns = [name.lower() for name in offered_columns([str(path)])]
    except AdaptError:
        return False
    if is_wide(columns):
        return True
    has_unit = any(label.lower() in columns for label in UNIT_LABELS if label not in _KEYS)
    return (
        has_unit
        and not {"key", *ERRORS} & {*columns}
        and len(columns) <= _MOST_COLUMNS
        and any(map(VALUES.fullmatch, columns))
    )


def is_wide(columns: Sequence[str]) -> bool:
    """Whether a column of times is followed by numbered units."""
    time, *units = columns or [""]
    stems = {re.sub(r"\d+$", "", name) for name in units}
    return bool(TIMES.fullmatch(time.lower())) and len(units) > 1 and len(stems) == 1 and units[0][-1].isdigit()
