"""Names of engines, export targets and schemes, quick to import for `--help`."""

from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypeAlias

from adapt.core.errors import UsageError
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, RING_SCHEMES, Scheme


class Engine(StrEnum):
    """An engine with its own placement of keys."""

    shards: tuple[int, ...]  # the first hash key of each shard of a list, ascending; empty but for Kinesis over a list

    SPARK = "spark"
    KAFKA = "kafka"
    FLINK = "flink"
    LIBRDKAFKA = "librdkafka:consistent_random"
    LIBRDKAFKA_RANDOM = "librdkafka:random"
    LIBRDKAFKA_CONSISTENT = "librdkafka:consistent"
    LIBRDKAFKA_MURMUR2 = "librdkafka:murmur2"
    LIBRDKAFKA_MURMUR2_RANDOM = "librdkafka:murmur2_random"
    LIBRDKAFKA_FNV1A = "librdkafka:fnv1a"
    LIBRDKAFKA_FNV1A_RANDOM = "librdkafka:fnv1a_random"
    SARAMA = "sarama"
    KINESIS = "kinesis"
    PULSAR = "pulsar"
    PULSAR_JAVA = "pulsar:java_string_hash"
    PULSAR_MURMUR3 = "pulsar:murmur3_32"
    RISINGWAVE = "risingwave"
    FLINK_SQL = "flink-sql"

    def __new__(cls, name: str) -> "Engine":
        """A member without a list of shards."""
        member = str.__new__(cls, name)
        member._value_, member.shards = name, ()
        return member

    @classmethod
    def _missing_(cls, value: object) -> "Engine | None":
        """librdkafka alone is its default partitioner."""
        return cls.LIBRDKAFKA if value == "librdkafka" else None

    @classmethod
    def kinesis_over(cls, shards: tuple[int, ...]) -> "Engine":
        """Kinesis over these shards, named by a digest of them."""
        digest = sha256(",".join(map(str, shards)).encode()).hexdigest()[:8]
        name = f"{cls.KINESIS}:{digest}"
        known = cls._value2member_map_.get(name)
        if known is None:
            member = str.__new__(cls, name)
            member._name_, member._value_, member.shards = f"KINESIS_{digest}", name, shards
            known = cls._value2member_map_.setdefault(name, member)
        assert isinstance(known, Engine)
        return known

    @property
    def family(self) -> str:
        """The engine without its partitioner."""
        return self.value.partition(":")[0]

    @property
    def folder(self) -> str:
        """The folder of its definition."""
        return self.family.replace("-", "_")

    @property
    def target(self) -> "Target":
        """The target of an export of plans over this engine."""
        if self.family in ("librdkafka", "sarama"):
            return Target.KAFKA
        return Target(self.value) if self.value in list(Target) else Target.PLAN

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        """By name, or by shards; members stay unique."""
        return (Engine.kinesis_over, (self.shards,)) if self.shards else (Engine, (self.value,))


class Target(StrEnum):
    """The target of an export: an engine, or any program."""

    SPARK = Engine.SPARK.value
    """Spark, batch and streaming, with Spark columns."""

    KAFKA = Engine.KAFKA.value
    """Kafka producers in Python."""

    FLINK = Engine.FLINK.value
    """Flink's keyed state, by key groups."""

    REKEY = "rekey"
    """Any engine, by its own hash: hot keys with replacements that it places as planned."""

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
    """
    if scheme is Scheme.HYBRID:
        if base in MAPPED_SCHEMES:
            raise UsageError(f"base {base} pins keys itself; use one of {', '.join(BASES)}")
        return base
    return Scheme.CONSISTENT if scheme in RING_SCHEMES else scheme


def name_in_plans(scheme: AnyScheme) -> str:
    """The name of a scheme in plans, without its shards."""
    return scheme.family if shards_of(scheme) and isinstance(scheme, Engine) else scheme.value


def shards_of(scheme: AnyScheme) -> tuple[int, ...]:
    """The first hash keys of listed shards; empty in other schemes."""
    return scheme.shards if isinstance(scheme, Engine) else ()
