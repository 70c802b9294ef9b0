"""Schemes by the names that users type."""

from collections.abc import Iterable

from adapt.core.engines.kinesis.shards import shards_from_text
from adapt.core.engines.names import AnyScheme, Engine
from adapt.traces.locations.location import location
from adapt.traces.read_errors import parsed


def scheme_named(name: str, known: Iterable[AnyScheme]) -> AnyScheme | None:
    """The scheme of a name; None if it is not known.

    `librdkafka` is its default partitioner; `kinesis:FILE` has the open shards of a list.

    Raises:
        BadInput: the file is not a list of shards, or they leave gaps or overlap.
    """
    found = {scheme.value: scheme for scheme in known}
    if name == Engine.LIBRDKAFKA.family:
        return found.get(Engine.LIBRDKAFKA)
    family, colon, file = name.partition(":")
    if family == Engine.KINESIS and colon and Engine.KINESIS in found:
        return Engine.kinesis_over(parsed(location(file), shards_from_text))
    return found.get(name)
