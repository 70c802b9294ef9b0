"""The consistent scheme: channels stand many times on a ring, and a key belongs to the first one it meets."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.keys.columns import Words
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import ByColumn, Channels
from adapt.core.keys.positions import SortedPositions

DEFAULT_REPLICAS = 1000
"""Replicas of a channel on the ring, as in the paper (section 5.5)."""

Replicas: TypeAlias = int | tuple[int, ...]
"""Replicas of every channel alike, or of each one."""


@dataclass(frozen=True, slots=True)
class ConsistentHash(ByColumn):
    """A ring on which a new channel takes keys from all others, and nothing else moves.

    Replica r of channel c stands at the hash of the text `c#r`, both decimal from 0. A key belongs to the channel
    of the first replica at or after its own hash, wrapping round; of replicas at one place, the lowest channel's.
    Channels may have different numbers of replicas, and then take keys about in their proportion; a channel that is
    given more takes keys from the others, and one that is left fewer gives them up, while no other key moves. A look-up
    takes O(1); the ring takes 20 bytes a replica, and is built again where it is unpickled.

    Attributes:
        replicas: Of each channel, from 1: one number, or N of them where they differ.
        hash: Places keys and replicas alike.

    Raises:
        UsageError: there is no channel or replica, or 2^31 or more of them in all, or not one number a channel.

    Source: partitioning functions, section 4.1.1; design, section 5.
    """

    channels: int
    replicas: Replicas = DEFAULT_REPLICAS
    hash: HashName = HashName.MURMUR3
    _positions: SortedPositions = field(init=False, repr=False, compare=False)
    _owners: Channels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "replicas", alike(self.replicas))
        _refuse_impossible(self.channels, self.replicas)
        positions, owners = _ring(self.channels, self.replicas, self.hash)
        object.__setattr__(self, "_positions", positions)
        object.__setattr__(self, "_owners", owners)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return self._owners[self.replicas_of(keys)]

    def channels_at(self, high: Words, low: Words) -> Channels:
        """The channel of each key that was hashed to a position already, in high and low words; shape (rows,)."""
        return self._owners[self._positions.first_at_or_after(high, low)]

    def replicas_of(self, keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """The replica that each key meets first, by its number in the order of the ring; shape (rows,)."""
        return self._positions.first_at_or_after(*HASHES[self.hash].positions(keys))

    @property
    def owners(self) -> Channels:
        """The channel of each replica in the order of the ring, read-only; shape (replicas,)."""
        return self._owners

    @property
    def positions(self) -> SortedPositions:
        """Where the replicas stand, in the order of the ring."""
        return self._positions

    @property
    def replica_counts(self) -> NDArray[np.int64]:
        """The replicas of each channel, shape (channels,)."""
        return _counts(self.channels, self.replicas)

    def __reduce__(self) -> tuple[type["ConsistentHash"], tuple[int, Replicas, HashName]]:
        return ConsistentHash, (self.channels, self.replicas, self.hash)


def alike(replicas: Replicas) -> Replicas:
    """The same replicas, as one number if every channel has as many."""
    return replicas[0] if isinstance(replicas, tuple) and len(set(replicas)) == 1 else replicas


def replica_names(counts: NDArray[np.int64]) -> pa.Array:
    """The texts `c#r` of so many replicas of each channel, channel by channel; shape (replicas,)."""
    ends = np.cumsum(counts)
    channel = np.repeat(np.arange(len(counts)), counts)
    replica = np.arange(len(channel)) - np.repeat(ends - counts, counts)
    return pc.binary_join_element_wise(pa.array(channel).cast("string"), pa.array(replica).cast("string"), "#")


def _refuse_impossible(channels: int, replicas: Replicas) -> None:
    if isinstance(replicas, tuple) and len(replicas) != channels:
        raise UsageError(f"a ring of {channels} channels cannot have replicas of {len(replicas)}: give one number each")
    total, fewest = (
        (sum(replicas), min(replicas, default=0)) if isinstance(replicas, tuple) else (channels * replicas, replicas)
    )
    if channels < 1 or fewest < 1 or total >= 2**31:
        found = f"{fewest} to {max(replicas, default=0)}" if isinstance(replicas, tuple) else f"{replicas}"
        raise UsageError(
            f"a ring has at least 1 channel with at least 1 replica, fewer than 2147483648 in all, not {channels} with"
            f" {found} each"
        )


def _counts(channels: int, replicas: Replicas) -> NDArray[np.int64]:
    """The replicas of each channel, shape (channels,)."""
    return np.array(replicas, np.int64) if isinstance(replicas, tuple) else np.full(channels, replicas, np.int64)


@lru_cache(maxsize=8)
def _ring(channels: int, replicas: Replicas, hash: HashName) -> tuple[SortedPositions, Channels]:
    """Where the replicas stand, in order, and whose each is; kept, since a replay asks for one ring every period."""
    counts = _counts(channels, replicas)
    high, low = HASHES[hash].positions(replica_names(counts))
    # Stable, so that replicas at one place stay in the order of their channels.
    order = np.lexsort((low, high))
    owners = np.repeat(np.arange(channels, dtype=np.int32), counts)[order]
    owners.setflags(write=False)
    return SortedPositions.from_sorted(high[order], low[order]), owners
