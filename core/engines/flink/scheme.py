"""The flink scheme: the placement of Flink's `keyBy`."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adapt.core.engines.flink.hash import flink_hash
from adapt.core.keys.partitioner import ByColumn, Channels
from adapt.core.partitioning.schemes.key_groups import MOST_GROUPS, channels_of_groups, groups_for


@dataclass(frozen=True, slots=True)
class FlinkPartitioner(ByColumn):
    """Flink's exact placement of `String` and `Long` keys on subtasks.

    A key's group is its mixed hash code modulo the max parallelism, and group g belongs to subtask
    floor(g N / max parallelism). Null and binary keys, which Flink rejects, have the codes of `flink_hash`.

    Attributes:
        channels: N, the parallelism, from 1 to the max parallelism.
        max_parallelism: The number of key groups (default: Flink's default for N subtasks).

    Raises:
        UsageError: there are no channels, fewer groups than channels, or more than 32768 groups.

    Source: users and peers, section 5.1, with vectors from Flink's own classes.
    """

    channels: int
    max_parallelism: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_parallelism", groups_for(self.channels, self.max_parallelism, MOST_GROUPS))

    @property
    def groups(self) -> int:
        """The number of key groups."""
        return groups_for(self.channels, self.max_parallelism, MOST_GROUPS)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return channels_of_groups(np.mod(flink_hash(keys), np.int32(self.groups)), self.channels, self.groups)
