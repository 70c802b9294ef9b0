"""Registry of schemes: makes the partitioner of a named scheme."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeAlias, runtime_checkable

from adapt.core.engines.names import AnyScheme, Engine, hashing_of
from adapt.core.engines.registry import placement_of
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.from_counts.bounded import USUAL, bounded
from adapt.core.partitioning.measures.population import Counted
from adapt.core.partitioning.measures.resources import Load
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.consistent import DEFAULT_REPLICAS, ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.jump import JumpHash, Maglev, Rendezvous
from adapt.core.partitioning.schemes.key_groups import KeyGroups
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
from adapt.core.stream import Key, KeyType


@dataclass(frozen=True, slots=True)
class Parts:
    """Parameters of partitioners; each scheme uses those that it needs."""

    channels: int
    hash: HashName = HashName.MURMUR3
    replicas: int = DEFAULT_REPLICAS
    explicit: Mapping[Key, int] = field(default_factory=dict)
    max_parallelism: int | None = None  # number of key groups. Default: Flink's default
    base: AnyScheme = Scheme.CONSISTENT  # the scheme of the keys that are not pinned, in a scheme that pins keys
    key_type: KeyType | None = None  # the type of the keys, for an engine. Default: that of their column
    cap: float = USUAL  # largest load of a channel / mean load, in the bounded scheme

    def ring(self) -> ConsistentHash:
        """The hash ring of the channels."""
        return ConsistentHash(self.channels, self.replicas, self.hash)


Factory: TypeAlias = Callable[[Parts], Partitioner]
"""Makes the partitioner of a scheme."""


def _mapped(parts: Parts) -> Partitioner:
    return HybridPartitioner(parts.explicit, _made(parts.base, parts))


def _made(scheme: AnyScheme, parts: Parts) -> Partitioner:
    if isinstance(scheme, Engine):
        return placement_of(scheme, parts.channels, parts.max_parallelism, parts.key_type)
    return SCHEMES[scheme](parts)


SCHEMES: Mapping[Scheme, Factory] = MappingProxyType(
    {
        Scheme.UNIFORM: lambda parts: UniformPartitioner(parts.channels, parts.hash),
        Scheme.CONSISTENT: Parts.ring,
        Scheme.HYBRID: _mapped,
        Scheme.JUMP: lambda parts: JumpHash(parts.channels, parts.hash),
        Scheme.RENDEZVOUS: lambda parts: Rendezvous(parts.channels, parts.hash),
        Scheme.MAGLEV: lambda parts: Maglev(parts.channels, parts.hash),
        Scheme.KEY_GROUPS: lambda parts: KeyGroups(parts.channels, parts.hash, parts.max_parallelism),
        Scheme.BOUNDED: _mapped,
    }
)


def make_partitioner(
    scheme: AnyScheme,
    channels: int,
    hash: HashName = HashName.MURMUR3,
    replicas: int = DEFAULT_REPLICAS,
    explicit: Mapping[Key, int] | None = None,
    max_parallelism: int | None = None,
    base: AnyScheme = Scheme.CONSISTENT,
    key_type: KeyType | None = None,
) -> Partitioner:
    """The partitioner of a scheme.

    Args:
        hash: Hash of keys and of replicas; ignored by the scheme of an engine, which has its own.
        replicas: Of each channel on a ring; ignored without a ring.
        explicit: The pinned keys, for a scheme that has any. Default: none.
        max_parallelism: Number of key groups, for a scheme that has them. Default: Flink's default.
        base: The scheme of the keys that are not pinned, in the hybrid scheme; one of `BASES`.
        key_type: The type of the keys, for an engine. Default: that of their column.
    """
    if explicit and scheme not in MAPPED_SCHEMES:
        raise UsageError(f"scheme {scheme} does not support pinned keys (got {len(explicit)})")
    hashing = hashing_of(scheme, base)
    return _made(scheme, Parts(channels, hash, replicas, explicit or {}, max_parallelism, hashing, key_type))


def follow(
    scheme: AnyScheme,
    counted: Counted,
    weigh: Load,
    parts: Parts,
    current: Partitioner | None = None,
    constraints: Constraints | None = None,
) -> Partitioner:
    """The partitioner of a scheme without a construction.

    Key groups are kept: without a given max parallelism, that of `current` is used as long as the channels fit in it,
    since Flink keeps a job's when it rescales.

    Args:
        parts: The parameters, without pinned keys.
        constraints: The constraints, for a scheme that supports them.
    """
    if scheme is Scheme.BOUNDED:
        return bounded(counted, parts.ring(), weigh, parts.cap, constraints)
    groups = parts.max_parallelism
    if groups is None:
        groups = _kept_groups(current, parts.channels)
    return make_partitioner(
        scheme, parts.channels, parts.hash, parts.replicas, max_parallelism=groups, key_type=parts.key_type
    )


@runtime_checkable
class _Grouped(Protocol):
    """A partitioner with key groups."""

    @property
    def groups(self) -> int:
        """The number of key groups."""


def max_parallelism_of(partitioner: Partitioner | None) -> int | None:
    """The number of key groups of a partitioner, or None."""
    if isinstance(partitioner, HybridPartitioner):
        return max_parallelism_of(partitioner.base)
    return partitioner.groups if isinstance(partitioner, _Grouped) else None


def _kept_groups(current: Partitioner | None, channels: int) -> int | None:
    groups = max_parallelism_of(current)
    return groups if groups is not None and channels <= groups else None
