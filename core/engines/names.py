"""Names of engines, of export targets, and of every scheme; light enough for `--help`."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme


class Engine(StrEnum):
    """An engine with a placement of keys of its own; the folder of that name defines it."""

    SPARK = "spark"
    KAFKA = "kafka"
    FLINK = "flink"


class Target(StrEnum):
    """What runs an exported plan: an engine that has an export, or a program in any language."""

    SPARK = Engine.SPARK.value
    """Spark, batch and streaming, by columns of its own."""

    KAFKA = Engine.KAFKA.value
    """Producers of Kafka in Python."""

    FLINK = Engine.FLINK.value
    """Flink's keyed state, by key groups."""

    PLAN = "plan"
    """A program in any language: the plan as text, and a reader of it in Java."""


AnyScheme: TypeAlias = Scheme | Engine
"""The scheme of a plan: one of ours, or an engine's own placement."""

_FROM_COUNTS = MAPPED_SCHEMES - {Scheme.HYBRID}

_IN_ORDER = (*(each for each in Scheme if each not in _FROM_COUNTS), *Engine, *sorted(_FROM_COUNTS))
SCHEMES_BY_NAME: Mapping[str, AnyScheme] = MappingProxyType({scheme.value: scheme for scheme in _IN_ORDER})
"""Every scheme by name, engines before those that are built from counts."""

CURRENT_SCHEMES: tuple[AnyScheme, ...] = (*Engine, Scheme.UNIFORM, Scheme.CONSISTENT)
"""What may place the keys of a stream today: engines, and plain ways of hashing."""
