"""Interfaces of exports: the plan they read, the files they make."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

from adapt.core.engines.names import AnyScheme
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.split_map import SplitMap
from adapt.core.stream import KeyType

Content: TypeAlias = bytes | pa.Table


@dataclass(frozen=True, slots=True)
class File:
    """One file of an export."""

    content: Content  # bytes, or a table that becomes Parquet
    about: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program included in an export."""

    about: str
    package: str
    file: str  # its file name


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of an export, with instructions."""

    files: Mapping[str, File]
    use: str  # instructions in Markdown, with an example; `{folder}` is replaced by the folder's name
    programs: Mapping[str, Program] = field(default_factory=dict)  # included programs by exported name


class ExportablePlan(Protocol):
    """The fields of `Plan` that exports read."""

    @property
    def scheme(self) -> AnyScheme:
        """The scheme."""

    @property
    def base(self) -> AnyScheme:
        """The scheme under the pinned keys of a hybrid plan."""

    @property
    def hashing(self) -> AnyScheme:
        """The scheme of the keys that are not pinned."""

    @property
    def channels(self) -> int:
        """N, at least 1."""

    @property
    def key_type(self) -> KeyType:
        """The type of the keys."""

    @property
    def hash(self) -> HashName:
        """The hash function; unused where an engine hashes."""

    @property
    def replicas(self) -> int:
        """Replicas of each channel on the ring; unused without a ring."""

    @property
    def explicit(self) -> ExplicitMap:
        """Pinned keys with their channels."""

    @property
    def splits(self) -> SplitMap:
        """Split keys with their channels."""

    @property
    def max_parallelism(self) -> int | None:
        """The number of key groups; None without key groups."""

    def content_hash(self) -> str:
        """SHA-256 in hex of the mapping."""

    def partitioner(self) -> Partitioner:
        """The partitioner of the plan."""


Exporter: TypeAlias = Callable[[ExportablePlan, int | None], Bundle]
"""Creates the files of a plan for a target, with the key groups of the job (None: the default).

Raises BadInput if the target cannot follow the plan, with the reason and an alternative.
"""
