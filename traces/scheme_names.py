"""Schemes by the names that users type."""

import math
from collections.abc import Iterable

from adapt.core.engines.names import AnyScheme, Engine
from adapt.core.errors import UsageError
from adapt.core.partitioning.schemes.names import Scheme
from adapt.traces.locations.location import location
from adapt.traces.read_errors import parsed


def scheme_named(name: str, known: Iterable[AnyScheme]) -> AnyScheme | None:
    """The scheme of a name; None if it is not known.

    `librdkafka` is its default partitioner; `kinesis:FILE` has the open shards of a list.
    """
    found = {scheme.value: scheme for scheme in known}
    if name == Engine.LIBRDKAFKA.family:
        return found.get(Engine.LIBRDKAFKA)
    family, colon, file = name.partition(":")
    if family == Engine.KINESIS and colon and Engine.KINESIS in found:
        from adapt.core.engines.kinesis.scheme import shards_from_text

        return Engine.kinesis_over(parsed(location(file), shards_from_text))
    return found.get(name)


def split_cap(name: str) -> tuple[str, float | None]:
    """The scheme and the cap of `bounded:cap=1.05`; None without one."""
    scheme, colon, cap = name.partition(":cap=")
    if scheme != Scheme.BOUNDED or not colon:
        return name, None
    try:
        found = float(cap)
    except ValueError:
        found = 0.0
    if not 1 < found < math.inf:
        raise UsageError(f"{scheme}:cap must be a number above 1, such as {scheme}:cap=1.05 (got {cap!r})")
    return scheme, found
