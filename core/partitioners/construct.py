"""The constructions of the hybrid scheme, by name."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Protocol

from adapt.core.partitioners.consistent import ConsistentHash
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.names import Construction
from adapt.core.partitioners.partitioner import Partitioner
from adapt.core.partitioners.scan import scan
from adapt.core.partitioners.utility import Utility
from adapt.core.resources.functions import Resources
from adapt.core.stream import Key


class Construct(Protocol):
    """Gives each tracked key a channel, in view of the partitioner in force (partitioning functions, section 4.2)."""

    def __call__(
        self,
        current: Partitioner,
        ring: ConsistentHash,
        counts: Mapping[Key, float],
        tracked: Collection[Key],
        resources: Resources,
        utility: Utility,
    ) -> HybridPartitioner:
        """The partitioner that follows `current`: `ring`, and an explicit channel for exactly the tracked keys.

        Args:
            current: The partitioner in force, of any scheme and channel count.
            ring: The consistent hash of the result.
            counts: Count of each tracked key, and of each key that `current` tracks and that still occurs.
            tracked: Keys to map, by falling count, then key bytes.
            resources: Load functions and tolerances.
            utility: Combines balance and migration penalties; lower is better.
        """


CONSTRUCTIONS: Mapping[Construction, Construct] = MappingProxyType({Construction.SCAN: scan})
