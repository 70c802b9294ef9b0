"""Units of any source, by its content."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adapt.core.errors import BadInput
from adapt.traces.locations.location import TOPIC_SCHEME, location
from adapt.traces.read_errors import readable
from adapt.traces.units.kinds import SourceKind, kind_of

if TYPE_CHECKING:
    from adapt.traces.units.samples import Samples

_MOST_DOCUMENT = 1 << 28
"""Longest document of Flink or CloudWatch; those of Prometheus and Spark may be of any length."""

OFFSETS = "offsets"
"""The metric by which a topic is judged without reading records."""


def units_of(source: str, metric: str = "", unit: Sequence[str] = ()) -> "Samples | None":
    """The samples of a source of metrics by unit.

    None if it holds rows, or counts by key.

    Args:
        source: A file or folder, the address of Flink's REST API, or a topic, whose metric is `OFFSETS`.
        metric: The metric, with labels as in PromQL; the consumer group, the stage of an event log, or the operator of
            a job. Empty to guess.
        unit: Labels that name a unit; empty to guess. In a table, it is the key.
    """
    if source.startswith(TOPIC_SCHEME):
        from adapt.traces.sources.live.address import TopicAddress
        from adapt.traces.units.topic_offsets import read_topic_offsets

        return read_topic_offsets(TopicAddress.parse(source)) if metric == OFFSETS else None
    if source.startswith(("http://", "https://")):
        from adapt.traces.units.flink_job import read_job

        return read_job(source, metric)
    path = location(source)
    kind = kind_of(path, tables=not unit)
    return None if kind is None else _read(path, kind, metric, unit)


def _read(path: Path, kind: SourceKind, metric: str, unit: Sequence[str]) -> "Samples":
    match kind:
        case SourceKind.EVENTS:
            from adapt.traces.units.spark_tasks import read_tasks

            return read_tasks(path, metric)
        case SourceKind.ANSWER | SourceKind.EXPOSED:
            from adapt.traces.units.prometheus import Selector, read_answer, read_exposed, samples_of

            series, types = (read_answer(path), {}) if kind is SourceKind.ANSWER else read_exposed(path)
            return samples_of(path, series, types, Selector.parsed(metric), unit)
        case SourceKind.GROUPS:
            from adapt.traces.units.kafka_tools import read_groups

            return read_groups(_text(path), metric)
        case SourceKind.OFFSETS:
            from adapt.traces.units.kafka_tools import read_offsets

            return read_offsets(_text(path))
        case SourceKind.DOCUMENT:
            from adapt.traces.units.documents import read_document

            return read_document(path, _document(path), metric)
        case SourceKind.TABLE:
            from adapt.traces.units.tables import read_table

            return read_table(path, metric, unit[0] if unit else "")


def _text(path: Path) -> list[str]:
    with readable(path):
        return path.read_text("utf-8", "replace").splitlines()


def _document(path: Path) -> object:
    """One JSON document."""
    import orjson

    with readable(path):
        if path.stat().st_size > _MOST_DOCUMENT:
            raise BadInput(f"{path} has more than {_MOST_DOCUMENT >> 20} MiB; ask for a shorter time")
        try:
            return orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError as error:
            raise BadInput(f"{path} is not JSON: {error}; export it again") from None
