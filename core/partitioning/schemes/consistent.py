"""Consistent hashing on a ring of virtual nodes."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.keys.columns import Words
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import ByBytes, Channels, SortedPositions
from adapt.core.stream import KeyType

DEFAULT_REPLICAS = 1000
"""Replicas (virtual nodes) of a channel on the ring, as in the paper (section 5.5)."""


MOST_REPLICAS = 10_000_000
"""Most replicas of a ring, which take some seconds."""


@dataclass(frozen=True, slots=True)
class ConsistentHash(ByBytes):
    """A hash ring: new channels take keys from all others.

    No other key moves.

    Replica r of channel c is at the hash of the text `c#r`, both decimal from 0. A key belongs to the channel of the
    first replica at or after its own hash, wrapping round; of replicas at one position, to the lowest channel.
    Lookup is O(1); the ring takes 24 bytes per replica, and is rebuilt when unpickled.

    Source: partitioning functions, section 4.1.1; docs/plan-format.md.
    """

    channels: int
    replicas: int = DEFAULT_REPLICAS  # of each channel, from 1
    hash: HashName = HashName.MURMUR3  # hash of keys and replicas
    _positions: SortedPositions = field(init=False, repr=False, compare=False)
    _owners: Channels = field(init=False, repr=False, compare=False)
    _numbers: Channels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _refuse_impossible(self.channels, self.replicas)
        positions, owners, numbers = _ring(self.channels, self.replicas, self.hash)
        object.__setattr__(self, "_positions", positions)
        object.__setattr__(self, "_owners", owners)
        object.__setattr__(self, "_numbers", numbers)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return self._owners[self.replicas_of(keys)]

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of one key by its bytes."""
        return self._owners.item(self._positions.first_of_one(*HASHES[self.hash].position(key)))

    def channels_at(self, high: Words, low: Words) -> Channels:
        """The channel of each hashed key.

        By the high and low words of its position; shape (rows,).
        """
        return self._owners[self._positions.first_at_or_after(high, low)]

    def replicas_of(self, keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """The first replica at or after each key.

        By its number in ring order; shape (rows,).
        """
        return self._positions.first_at_or_after(*HASHES[self.hash].positions(keys))

    @property
    def owners(self) -> Channels:
        """The channel of each replica in ring order, read-only; shape (replicas,)."""
        return self._owners

    @property
    def numbers(self) -> Channels:
        """The number of each replica within its channel.

        In ring order, from 0, read-only; shape (replicas,).
        """
        return self._numbers

    @property
    def positions(self) -> SortedPositions:
        """The positions of the replicas, in ring order."""
        return self._positions

    def __reduce__(self) -> tuple[type["ConsistentHash"], tuple[int, int, HashName]]:
        return ConsistentHash, (self.channels, self.replicas, self.hash)


def replica_names(channels: int, replicas: int) -> pa.Array:
    """The texts `c#r` of the replicas, channel by channel.

    Shape (channels * replicas,).
    """
    channel, replica = np.divmod(np.arange(channels * replicas), replicas)
    return pc.binary_join_element_wise(pa.array(channel).cast("string"), pa.array(replica).cast("string"), "#")


def _refuse_impossible(channels: int, replicas: int) -> None:
    if channels < 1 or replicas < 1 or channels * replicas > MOST_REPLICAS:
        raise UsageError(
            f"a hash ring needs at least 1 worker with at least 1 replica, and has at most {MOST_REPLICAS:,} replicas"
            f" in all (got {channels:,} workers with {replicas:,} each, {channels * replicas:,}); decrease one"
        )


@lru_cache(maxsize=8)
def _ring(channels: int, replicas: int, hash: HashName) -> tuple[SortedPositions, Channels, Channels]:
    """The positions of the replicas in order, their channels and numbers.

    Cached, as a replay uses one ring every period.
    """
    high, low = HASHES[hash].positions(replica_names(channels, replicas))
    # Stable, so that replicas at one position stay in the order of their channels.
    order = np.lexsort((low, high))
    owners, numbers = (part[order].astype(np.int32) for part in np.divmod(np.arange(len(order)), replicas))
    owners.setflags(write=False)
    numbers.setflags(write=False)
    return SortedPositions.from_sorted(high[order], low[order]), owners, numbers
