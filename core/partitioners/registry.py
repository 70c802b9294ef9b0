"""Every scheme by name: what a plan, a build and a comparison make their partitioners with."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from adapt.core.errors import UsageError
from adapt.core.hashing.names import HashName
from adapt.core.partitioners.consistent import DEFAULT_REPLICAS, ConsistentHash
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.names import Scheme
from adapt.core.partitioners.partitioner import Partitioner
from adapt.core.partitioners.uniform import UniformPartitioner
from adapt.core.stream import Key

Factory: TypeAlias = Callable[[int, HashName, int, Mapping[Key, int]], Partitioner]
"""Makes a partitioner of a number of channels, a hash, replicas of a channel and an explicit map."""


def _uniform(channels: int, hash: HashName, _: int, explicit: Mapping[Key, int]) -> Partitioner:
    _refuse_explicit(explicit, Scheme.UNIFORM)
    return UniformPartitioner(channels, hash)


def _consistent(channels: int, hash: HashName, replicas: int, explicit: Mapping[Key, int]) -> Partitioner:
    _refuse_explicit(explicit, Scheme.CONSISTENT)
    return ConsistentHash(channels, replicas, hash)


def _hybrid(channels: int, hash: HashName, replicas: int, explicit: Mapping[Key, int]) -> Partitioner:
    return HybridPartitioner(explicit, ConsistentHash(channels, replicas, hash))


SCHEMES: dict[Scheme, Factory] = {
    Scheme.UNIFORM: _uniform,
    Scheme.CONSISTENT: _consistent,
    Scheme.HYBRID: _hybrid,
}


def make_partitioner(
    scheme: Scheme,
    channels: int,
    hash: HashName = HashName.MURMUR3,
    replicas: int = DEFAULT_REPLICAS,
    explicit: Mapping[Key, int] | None = None,
) -> Partitioner:
    """The partitioner of a scheme.

    Args:
        scheme: How keys are placed.
        channels: N, from 1.
        hash: Places keys, and replicas on a ring.
        replicas: Of each channel on a ring; passed over by a scheme without one.
        explicit: The explicit map, of a scheme that has one; empty if not given.

    Raises:
        UsageError: a number is out of its range, or the scheme has no explicit map and one was given.
        BadInput: a key is mapped to a channel that does not exist.
    """
    return SCHEMES[scheme](channels, hash, replicas, explicit or {})


def _refuse_explicit(explicit: Mapping[Key, int], scheme: Scheme) -> None:
    if explicit:
        raise UsageError(f"scheme {scheme} has no explicit map, but {len(explicit)} keys are mapped explicitly")
