"""Kafka's tools: offsets and lag by partition, as they print them."""

from collections.abc import Mapping, Sequence

import numpy as np

from adapt.core.errors import BadInput, UsageError
from adapt.core.phrases import listed
from adapt.core.values import visible
from adapt.traces.units.kinds import GROUPS_HEADER, OFFSETS_LINE
from adapt.traces.units.samples import Amount, Samples, Unit

_NO_TIMES = "snapshots have no times: loads are shares of what arrived between them"
_OLD_COLUMNS = {"pid": "PARTITION", "logsize": "LOG-END-OFFSET", "offset": "CURRENT-OFFSET", "owner": "CONSUMER-ID"}


def read_groups(lines: Sequence[str], group: str = "") -> Samples:
    """What `kafka-consumer-groups --describe` prints, of one or several snapshots.

    Args:
        group: The consumer group; empty if there is only one.

    Raises:
        UsageError: If there are several groups and none is named.
    """
    columns: list[str] = []
    rows: list[Mapping[str, str]] = []
    for line in lines:
        words = line.split()
        named = [_OLD_COLUMNS.get(word.lower(), word.upper()) for word in words]
        if GROUPS_HEADER.match(line) and {"TOPIC", "PARTITION", "LAG"} <= {*named}:
            columns = named
        elif columns and len(words) >= columns.index("LAG") + 1 and words[columns.index("PARTITION")].isdecimal():
            rows.append(dict(zip(columns, words, strict=False)))
    groups = sorted({row.get("GROUP", "") for row in rows})
    chosen = [row for row in rows if not group or row.get("GROUP", "") == group]
    if group and not chosen:
        raise UsageError(f"there is no group {group!r}; available: {listed(groups)}")
    if not group and len(groups) > 1:
        raise UsageError(f"there are several consumer groups; choose one with --count: {listed(groups[:6])}")
    return _of_rows(chosen)


def _of_rows(rows: Sequence[Mapping[str, str]]) -> Samples:
    """Samples of rows, snapshot after snapshot."""
    topics = {row["TOPIC"] for row in rows}
    seen: dict[str, int] = {}
    found: dict[str, tuple[Unit, list[tuple[int, float, float]]]] = {}
    unknown = 0
    for row in rows:
        name = row["PARTITION"] if len(topics) == 1 else f"{row['TOPIC']}-{row['PARTITION']}"
        snapshot = seen[name] = seen.get(name, -1) + 1
        end, lag = (row.get(column, "-") for column in ("LOG-END-OFFSET", "LAG"))
        worker = next((row[each] for each in ("CONSUMER-ID", "HOST", "CLIENT-ID") if row.get(each, "-") != "-"), "")
        entry = found.setdefault(name, (Unit(name, row["TOPIC"], worker), []))
        if not end.isdecimal():
            unknown += 1
            continue
        entry[1].append((snapshot, float(end), float(lag) if lag.lstrip("-").isdecimal() else np.nan))
    series = [(unit, np.array(each)) for unit, each in found.values() if each]
    if not series:
        raise BadInput("no partition has a LOG-END-OFFSET; describe the group while its topic has records")
    notes = [f"{unknown} rows without an end offset are skipped"] if unknown else []
    if any(len(each) > 1 for _, each in series):
        notes.append(_NO_TIMES)
    ends = [(unit, each[:, 0].astype(np.int64), each[:, 1]) for unit, each in series]
    lags = [(unit, each[:, 0].astype(np.int64), each[:, 2]) for unit, each in series]
    made = Samples.of_series("LOG-END-OFFSET", Amount.COUNTER, ends, is_timed=False, notes=notes)
    return made.with_lag(Samples.of_series("LAG", Amount.LEVEL, lags, is_timed=False))


def read_offsets(lines: Sequence[str]) -> Samples:
    """What `kafka-get-offsets` prints, once or several times one after the other."""
    found: dict[tuple[str, int], list[float]] = {}
    for line in lines:
        match = OFFSETS_LINE.match(line)
        if match and match[3]:
            found.setdefault((match[1], int(match[2])), []).append(float(match[3]))
    topics = sorted({topic for topic, _ in found})
    if len(topics) > 1:
        shown = listed([visible(topic) for topic in topics[:4]])
        raise UsageError(f"there are {len(topics)} topics, {shown}; give the lines of one, as partitions of one stream")
    series = [
        (Unit(str(partition), topic), np.arange(len(ends)), np.array(ends))
        for (topic, partition), ends in found.items()
    ]
    notes = [_NO_TIMES]
    notes = notes if any(len(ends) > 1 for ends in found.values()) else []
    return Samples.of_series("end offset", Amount.COUNTER, series, is_timed=False, notes=notes)
