"""Envelopes of `kcat -J`, read as JSON lines."""

import re

from adapt.traces.sources.formats.json_lines import JsonLines

TIMES = {"ts": "epoch_ms"}
"""Kafka's timestamps are in milliseconds."""

PARTITIONS = {"key": "partition"}
"""Column of the partition of a record, by the column of its key."""

ENVELOPE = re.compile(
    r'\s*\{\s*"topic"\s*:\s*"[^"]*"\s*,\s*"partition"\s*:\s*-?\d+\s*,\s*"offset"\s*:\s*-?\d+\s*,.*"(key|payload)"\s*:',
    re.DOTALL,
)
"""Beginning of an envelope."""


def envelopes() -> JsonLines:
    """The format of `kcat -J`."""
    return JsonLines(TIMES, PARTITIONS)
