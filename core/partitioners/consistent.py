"""The consistent scheme: channels stand many times on a ring, and a key belongs to the first one it meets."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.hashing.columns import column_of
from adapt.core.hashing.hashes import HASHES
from adapt.core.hashing.names import HashName
from adapt.core.hashing.positions import SortedPositions
from adapt.core.partitioners.partitioner import Channels
from adapt.core.stream import Key

DEFAULT_REPLICAS = 1000
"""Replicas of a channel on the ring, as in the paper (section 5.5)."""


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """A ring on which a new channel takes keys from all others, and nothing else moves.

    Replica r of channel c stands at the hash of the text `c#r`, both decimal from 0. A key belongs to the channel
    of the first replica at or after its own hash, wrapping round; of replicas at one place, the lowest channel's.
    A look-up takes O(1); the ring takes 20 bytes a replica, and is built again where it is unpickled.

    Attributes:
        channels: N, from 1.
        replicas: Of each channel, from 1.
        hash: Places keys and replicas alike.

    Raises:
        UsageError: there is no channel or replica, or 2^31 or more of them in all.

    Source: partitioning functions, section 4.1.1; design, section 5.
    """

    channels: int
    replicas: int = DEFAULT_REPLICAS
    hash: HashName = HashName.MURMUR3
    _positions: SortedPositions = field(init=False, repr=False, compare=False)
    _owners: Channels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.channels < 1 or self.replicas < 1 or self.channels * self.replicas >= 2**31:
            raise UsageError(
                f"a ring has at least 1 channel with at least 1 replica, fewer than 2147483648 in all, "
                f"not {self.channels} with {self.replicas} each"
            )
        positions, owners = _ring(self.channels, self.replicas, self.hash)
        object.__setattr__(self, "_positions", positions)
        object.__setattr__(self, "_owners", owners)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return self._owners[self.replicas_of(keys)]

    def replicas_of(self, keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """The replica that each key meets first, by its number in the order of the ring; shape (rows,)."""
        return self._positions.first_at_or_after(*HASHES[self.hash].positions(keys))

    @property
    def owners(self) -> Channels:
        """The channel of each replica in the order of the ring, read-only; shape (channels * replicas,)."""
        return self._owners

    def channel_of(self, key: Key) -> int:
        """The channel of one key."""
        return int(self.channels_of(column_of(key))[0])

    def __reduce__(self) -> tuple[type["ConsistentHash"], tuple[int, int, HashName]]:
        return ConsistentHash, (self.channels, self.replicas, self.hash)


@lru_cache(maxsize=8)
def _ring(channels: int, replicas: int, hash: HashName) -> tuple[SortedPositions, Channels]:
    """Where the replicas stand, in order, and whose each is; kept, since a replay asks for one ring every period."""
    high, low = HASHES[hash].positions(_replica_names(channels, replicas))
    # Stable, so that replicas at one place stay in the order of their channels.
    order = np.lexsort((low, high))
    owners = (order // replicas).astype(np.int32)
    owners.setflags(write=False)
    return SortedPositions.of(high[order], low[order]), owners


def _replica_names(channels: int, replicas: int) -> pa.Array:
    """The texts `c#r`, channel by channel."""
    channel, replica = np.divmod(np.arange(channels * replicas), replicas)
    return pc.binary_join_element_wise(pa.array(channel).cast("string"), pa.array(replica).cast("string"), "#")
