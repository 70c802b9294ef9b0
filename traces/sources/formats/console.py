"""What `kafka-console-consumer` and `kcat -J` print.

Fields come in the order timestamp, partition, offset, epoch, headers, key, value, whatever the order of the properties
(Kafka 2.7 and later). The timestamp, partition, offset and epoch name themselves; the rest is guessed, or stated.
"""

import re
from collections.abc import Sequence

from adapt.core.errors import UsageError, did_you_mean
from adapt.traces.sources.formats.json_lines import JsonLines
from adapt.traces.sources.formats.text import Pattern

TIMES = {"ts": "epoch_ms", "timestamp": "epoch_ms"}
"""Kafka's timestamps are in milliseconds."""

PARTITIONS = {"key": "partition"}
"""Column of the partition of a record, by the column of its key."""

_HAS = ('topic"', 'partition"', 'offset"', '(key|payload|value)"')
ENVELOPE = re.compile(r"\s*\{" + "".join(rf'(?=.*"{name}\s*:)' for name in _HAS), re.DOTALL)
"""What an envelope of kcat, or of rpk, has."""


def envelopes() -> JsonLines:
    """The format of `kcat -J`."""
    return JsonLines(TIMES, PARTITIONS)


_TIME = r"(?:CreateTime|LogAppendTime)"
_FIELDS = {
    "timestamp": rf"(?:{_TIME}:(?P<ts>-?\d+)|NO_TIMESTAMP)",
    "partition": r"Partition:(?P<partition>\d+)",
    "offset": r"Offset:(?P<offset>-?\d+)",
    "epoch": r"Epoch:(?P<epoch>-?\w+)",
    "headers": r"(?P<headers>.*?)",
    "key": r"(?P<key>.*?)",
    "value": r"(?P<value>.*)",
}
"""Expression of each field, in their order."""

_NAMED = ("timestamp", "partition", "offset", "epoch")
_NO_HEADERS = "NO_HEADERS"
_SEPARATORS = {"key.separator": "\t", "line.separator": "\n", "null.literal": "null", "headers.separator": ","}
_KNOWN = (*(f"print.{name}" for name in _FIELDS), *_SEPARATORS)

BEGINS = re.compile(rf"(?:{_TIME}:-?\d+|NO_TIMESTAMP|Partition:\d+|Offset:\d+)(?=(?P<separator>[^\w\r\n-]))")
"""Beginning of a line with a field that names itself, and the character that separates it from the next."""


def console_format(properties: Sequence[str], lines: Sequence[str]) -> Pattern:
    """The format of a dump.

    Args:
        properties: NAME=VALUE, as given to `--property`.
        lines: The first lines; what no property states is guessed from them.
    """
    given = dict(_property(each) for each in properties)
    first = BEGINS.match(lines[0])
    separator = given.get("key.separator") or (first["separator"] if first else "\t")
    printed = _printed(given, lines, separator)
    null = given.get("null.literal", "null")
    pattern = "^" + re.escape(separator).join(_FIELDS[name] for name in printed) + "$"
    columns = tuple({"timestamp": "ts"}.get(name, name) for name in printed)
    missing = {"key": null, "value": null, "headers": _NO_HEADERS}
    what = f"does not have the fields {', '.join(columns)} of the dump"
    return Pattern(
        pattern, columns, missing, what, TIMES if "ts" in columns else {}, PARTITIONS if "partition" in columns else {}
    )


def is_dump(lines: Sequence[str]) -> bool:
    """Whether most lines begin as those of a dump, in one way."""
    return sum(bool(BEGINS.match(line)) for line in lines) * 2 > len(lines)


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--property must be NAME=VALUE, as given to kafka-console-consumer (got {text!r})")
    if name not in _KNOWN:
        if not name.startswith("print.") and "deserializer" in name:
            return name, value
        raise UsageError(f"--property {name!r} is unknown{did_you_mean(name, _KNOWN)}")
    if name.startswith("print.") and value not in ("true", "false"):
        raise UsageError(f"--property {name} must be true or false (got {value!r})")
    if name == "line.separator" and value not in ("\n", r"\n"):
        raise UsageError("--property line.separator must be a line end; dump the topic with the default")
    return name, value


def _printed(given: dict[str, str], lines: Sequence[str], separator: str) -> list[str]:
    """The printed fields, in order."""
    begin = {name: re.compile(re.sub(r"\?P<\w+>", "?:", _FIELDS[name])) for name in _NAMED}
    whole = [line for line in lines if BEGINS.match(line)] or lines  # without other output
    left, printed = [line.rstrip("\r\n") for line in whole], list[str]()
    for name, starts in begin.items():
        has = sum(bool(starts.match(line)) for line in left) * 2 > len(left)
        if given.get(f"print.{name}", "true" if has else "false") == "true":
            printed.append(name)
            left = [line.partition(separator)[2] for line in left]
    stated = {
        name: given[f"print.{name}"] == "true" for name in ("headers", "key", "value") if f"print.{name}" in given
    }
    has_headers = stated.get("headers", any(line.startswith(_NO_HEADERS + separator) for line in left))
    fields = sorted(line.count(separator) + 1 for line in left)[len(left) // 10] - has_headers
    has_value = stated.get("value", True)
    has_key = stated.get("key", fields > has_value)
    printed += [name for name, has in (("headers", has_headers), ("key", has_key), ("value", has_value)) if has]
    return printed
