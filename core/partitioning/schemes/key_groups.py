"""Key groups as in Flink: channels own ranges of groups."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import ByBytes, Channels
from adapt.core.stream import KeyType

FEWEST_GROUPS = 128
"""Default number of groups for few channels."""

MOST_GROUPS = 32768
"""Default number of groups for many channels, and Flink's maximum."""


@dataclass(frozen=True, slots=True)
class KeyGroups(ByBytes):
    """Hashes keys to key groups; a rescale re-splits their ranges.

    A key's group is its hash modulo the number of groups, and group g belongs to channel floor(g N / groups).

    Source: Carbone et al., State Management in Apache Flink (VLDB 2017), section 3.4; users and peers, section 5.1.
    """

    channels: int  # N, from 1 to the number of groups
    hash: HashName = HashName.MURMUR3
    max_parallelism: int | None = None  # the number of groups. Default: Flink's default for N channels

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_parallelism", groups_for(self.channels, self.max_parallelism))

    @property
    def groups(self) -> int:
        """The number of groups."""
        assert self.max_parallelism is not None
        return self.max_parallelism

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return channels_of_groups(HASHES[self.hash].modulo(keys, self.groups), self.channels, self.groups)

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of one key by its bytes."""
        return HASHES[self.hash].number(key) % self.groups * self.channels // self.groups


def default_max_parallelism(channels: int) -> int:
    """Flink's default: the next power of two from 1.5 N.

    Within 128 to 32768.
    """
    return min(max(1 << (channels + channels // 2 - 1).bit_length(), FEWEST_GROUPS), MOST_GROUPS)


def groups_for(channels: int, max_parallelism: int | None, most: int = 2**31 - 1) -> int:
    """The number of groups for N channels: as given, or the default."""
    check_channels(channels, most)
    groups = default_max_parallelism(channels) if max_parallelism is None else max_parallelism
    if not channels <= groups <= most:
        raise UsageError(f"--max-parallelism must be from {channels}, the number of workers, to {most} (got {groups})")
    return groups


def channels_of_groups(groups: NDArray[np.int32], channels: int, number: int) -> Channels:
    """The channel of each key group: equal ranges.

    Shape as `groups`; ranges differ by at most one group.
    """
    return (groups.astype(np.int64) * channels // number).astype(np.int32)
