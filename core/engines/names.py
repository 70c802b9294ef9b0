"""Names of engines, export targets and schemes, quick to import for `--help`."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from adapt.core.errors import UsageError
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, RING_SCHEMES, Scheme


class Engine(StrEnum):
    """An engine with its own placement of keys."""

    SPARK = "spark"
    KAFKA = "kafka"
    FLINK = "flink"


class Target(StrEnum):
    """The target of an export: an engine, or any program."""

    SPARK = Engine.SPARK.value
    """Spark, batch and streaming, with Spark columns."""

    KAFKA = Engine.KAFKA.value
    """Kafka producers in Python."""

    FLINK = Engine.FLINK.value
    """Flink's keyed state, by key groups."""

    PLAN = "plan"
    """A program in any language: the plan as text, with a reader in Java."""


AnyScheme: TypeAlias = Scheme | Engine
"""The scheme of a plan: ours, or an engine's own placement."""

_FROM_COUNTS = MAPPED_SCHEMES - {Scheme.HYBRID}

_IN_ORDER = (*(each for each in Scheme if each not in _FROM_COUNTS), *Engine, *sorted(_FROM_COUNTS))
SCHEMES_BY_NAME: Mapping[str, AnyScheme] = MappingProxyType({scheme.value: scheme for scheme in _IN_ORDER})
"""Every scheme by name, engines first."""

CURRENT_SCHEMES: tuple[AnyScheme, ...] = (*Engine, Scheme.UNIFORM, Scheme.CONSISTENT)
"""What may place keys today: engines and plain hashing."""

BASES: tuple[AnyScheme, ...] = tuple(each for each in SCHEMES_BY_NAME.values() if each not in MAPPED_SCHEMES)
"""What may place the keys that a hybrid plan does not pin."""


def hashing_of(scheme: AnyScheme, base: AnyScheme) -> AnyScheme:
    """The scheme of the keys that are not pinned.

    Only hybrid has a choice of base.

    Raises:
        UsageError: the base pins keys itself.
    """
    if scheme is Scheme.HYBRID:
        if base not in BASES:
            raise UsageError(f"--base {base} pins keys itself; use one of {', '.join(BASES)}")
        return base
    return Scheme.CONSISTENT if scheme in RING_SCHEMES else scheme
