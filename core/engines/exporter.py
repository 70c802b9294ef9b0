"""What an export reads of a plan, and the function that turns it into files."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from adapt.core.engines.bundle import Bundle
from adapt.core.engines.names import AnyScheme
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.schemes.consistent import Replicas
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.stream import KeyType


class ExportablePlan(Protocol):
    """A plan as exports read it; its fields are those of `Plan`."""

    @property
    def scheme(self) -> AnyScheme:
        """How keys are placed."""

    @property
    def channels(self) -> int:
        """N, from 1."""

    @property
    def key_type(self) -> KeyType:
        """The type of the keys."""

    @property
    def hash(self) -> HashName:
        """The hash function; without meaning in the placement of an engine."""

    @property
    def replicas(self) -> Replicas:
        """Replicas of each channel on the ring; without meaning in a scheme without a ring."""

    @property
    def explicit(self) -> ExplicitMap:
        """Pinned keys with their channels."""

    @property
    def max_parallelism(self) -> int | None:
        """The key groups; None in a scheme without them."""

    def content_hash(self) -> str:
        """SHA-256 in hex of what decides the mapping."""

    def partitioner(self) -> Partitioner:
        """The partitioner of the plan."""


Exporter: TypeAlias = Callable[[ExportablePlan, int | None], Bundle]
"""Makes the files of a plan for one target, with the key groups of the job (None, the default of the target).

Raises BadInput where the target cannot place keys so; the sentence says why and what can be built instead.
"""
