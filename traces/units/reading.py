"""Units of any source, by its content."""

from collections.abc import Sequence
from pathlib import Path

import orjson

from adapt.core.errors import BadInput
from adapt.traces.locations.location import TOPIC_SCHEME, location
from adapt.traces.read_errors import readable
from adapt.traces.sources.formats.spark_log import is_event_log
from adapt.traces.sources.live.address import TopicAddress
from adapt.traces.units.documents import is_document, read_document
from adapt.traces.units.flink_job import read_job
from adapt.traces.units.kafka_tools import GROUPS_HEADER, OFFSETS_LINE, read_groups, read_offsets
from adapt.traces.units.prometheus import (
    SERIES,
    Selector,
    is_exposed,
    read_answer,
    read_exposed,
    samples_of,
)
from adapt.traces.units.samples import Samples
from adapt.traces.units.spark_tasks import read_tasks
from adapt.traces.units.tables import holds_units, read_table

_HEAD = 1 << 16
_MOST_DOCUMENT = 1 << 28
"""Longest document of Flink or CloudWatch; those of Prometheus and Spark may be of any length."""


OFFSETS = "offsets"
"""The metric by which a topic is judged without reading records."""


def units_of(source: str, metric: str = "", unit: Sequence[str] = ()) -> Samples | None:
    """The samples of a source of metrics by unit.

    None if it holds rows, or counts by key.

    Args:
        source: A file or folder, the address of Flink's REST API, or a topic, whose metric is `OFFSETS`.
        metric: The metric, with labels as in PromQL; the consumer group, the stage of an event log, or the operator of
            a job. Empty to guess.
        unit: Labels that name a unit; empty to guess. In a table, it is the key.
    """
    if source.startswith(TOPIC_SCHEME):
        from adapt.traces.units.topic_offsets import read_topic_offsets

        return read_topic_offsets(TopicAddress.parse(source)) if metric == OFFSETS else None
    if source.startswith(("http://", "https://")):
        return read_job(source, metric)
    path = location(source)
    kind = _kind(path)
    return None if not kind or (kind == "table" and unit) else read_units(path, metric, unit)


def read_units(path: Path, metric: str = "", unit: Sequence[str] = ()) -> Samples:
    """The samples of a file or folder; see `units_of`."""
    match _kind(path):
        case "events":
            return read_tasks(path, metric)
        case "answer":
            return samples_of(path, read_answer(path), {}, Selector.parsed(metric), unit)
        case "exposed":
            return samples_of(path, *read_exposed(path), Selector.parsed(metric), unit)
        case "groups":
            return read_groups(_text(path), metric)
        case "offsets":
            return read_offsets(_text(path))
        case "document":
            return read_document(path, _document(path), metric)
        case "table":
            return read_table(path, metric, unit[0] if unit else "")
    raise BadInput(f"{path} holds no numbers by unit that are known")


def _kind(path: Path) -> str:
    """What a path holds; empty if not units."""
    if path.is_dir() or not path.is_file():
        return "events" if path.is_dir() and is_event_log(path) else ""
    with readable(path), path.open("rb") as file:
        head = file.read(_HEAD)
    if is_event_log(path):
        return "events"
    if SERIES.search(head):
        return "answer"
    if head.lstrip()[:1] in (b"{", b"["):
        return "document" if is_document(_document(path)) else ""
    lines = head.decode("utf-8", "replace").splitlines()[:40]
    if any(map(GROUPS_HEADER.match, lines)):
        return "groups"
    if lines and all(map(OFFSETS_LINE.match, lines[:-1] or lines)):
        return "offsets"
    if is_exposed(lines):
        return "exposed"
    return "table" if holds_units(path) else ""


def _text(path: Path) -> list[str]:
    with readable(path):
        return path.read_text("utf-8", "replace").splitlines()


def _document(path: Path) -> object:
    """One JSON document; None if it is another, or too long."""
    with readable(path):
        if path.stat().st_size > _MOST_DOCUMENT:
            return None
        try:
            return orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            return None
