"""The channels that each key may use."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels
from adapt.core.random_bits import GOLDEN

_MIX1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX2 = np.uint64(0xC4CEB9FE1A85EC53)


@dataclass(frozen=True, slots=True)
class Choices:
    """The distinct channels that each key may use, first choice first."""

    channels: Channels  # those of all keys, one key after the other, shape (places,)
    offsets: NDArray[np.int64]  # key i has channels[offsets[i]:offsets[i + 1]]; shape (keys + 1,)

    @property
    def keys(self) -> NDArray[np.int64]:
        """The key of each place, shape (places,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def hashed_choice(keys: pa.Array, choice: int, channels: int, hash: HashName = HashName.MURMUR3) -> Channels:
    """A given choice of channel of each key.

    By a hash of its own; shape (keys,).

    Choice 0 is the channel of the uniform scheme. Choice j is the finalizer of MurmurHash3 over the first word of the
    key's position plus j times 2^64 over the golden ratio, modulo N.
    """
    known = HASHES[hash]
    if choice == 0:
        return known.modulo(keys, channels)
    high, _ = known.positions(keys)
    word = high + np.uint64(choice * int(GOLDEN) % 2**64)
    word = (word ^ (word >> np.uint64(33))) * _MIX1
    word = (word ^ (word >> np.uint64(33))) * _MIX2
    return ((word ^ (word >> np.uint64(33))) % np.uint64(channels)).astype(np.int32)


def choices_of(
    keys: pa.Array,
    of_each: NDArray[np.int64],
    everywhere: NDArray[np.bool_],
    channels: int,
    hash: HashName = HashName.MURMUR3,
) -> Choices:
    """The hashed choices of keys, or all channels in order.

    Hash functions may agree, so a key can have fewer channels than choices, as in the papers.

    Args:
        of_each: Number of hashed choices of each key, from 1; shape (keys,).
        everywhere: Which keys may use every channel instead, shape (keys,).
    """
    anywhere = np.flatnonzero(everywhere)
    hashed = np.where(everywhere, 0, of_each)
    owners = [np.repeat(anywhere, channels)]
    ranks = [np.tile(np.arange(channels), len(anywhere))]
    found = [np.tile(np.arange(channels, dtype=np.int32), len(anywhere))]
    for choice in range(int(hashed.max(initial=0))):
        having = np.flatnonzero(hashed > choice)
        owners.append(having)
        ranks.append(np.full(len(having), choice))
        found.append(hashed_choice(keys.take(pa.array(having)), choice, channels, hash))
    return _distinct(np.concatenate(owners), np.concatenate(ranks), np.concatenate(found), len(keys))


def _distinct(owners: NDArray[np.int64], ranks: NDArray[np.int64], channels: Channels, keys: int) -> Choices:
    """Each channel of a key once, at its first choice."""
    by_channel = np.lexsort((ranks, channels, owners))
    first = np.ones(len(owners), np.bool_)
    first[1:] = (np.diff(owners[by_channel]) != 0) | (np.diff(channels[by_channel]) != 0)
    kept = by_channel[first]
    kept = kept[np.lexsort((ranks[kept], owners[kept]))]
    offsets = np.zeros(keys + 1, np.int64)
    np.cumsum(np.bincount(owners[kept], minlength=keys), out=offsets[1:])
    return Choices(channels[kept], offsets)
