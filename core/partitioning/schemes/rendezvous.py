"""Rendezvous hashing: the channel with the highest bid wins."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import Words
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import ByColumn, Channels

_MIX1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX2 = np.uint64(0xC4CEB9FE1A85EC53)


@dataclass(frozen=True, slots=True)
class Rendezvous(ByColumn):
    """Highest random weight: a rescale moves few keys.

    A new channel takes keys from all others, a removed one hands its keys to all.

    Channel c bids for a key the finalizer of MurmurHash3 over the exclusive or of two words: the first of the key's
    position, and the first of the position of the text `c` (decimal, from 0). Of equal bids the lowest channel's wins.
    O(N) per key.

    Source: Thaler and Ravishankar, Using Name-Based Mappings to Increase Hit Rates (1998).
    """

    channels: int
    hash: HashName = HashName.MURMUR3

    def __post_init__(self) -> None:
        check_channels(self.channels)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return self.of_words(HASHES[self.hash].positions(keys)[0])

    def of_words(self, words: Words) -> Channels:
        """The channel of each key by the first word of its position."""
        bidders, channels = _bidders(self.channels, self.hash), np.empty(len(words), np.int32)
        _highest(words, bidders, channels)
        return channels


@lru_cache(maxsize=4)
def _bidders(channels: int, hash: HashName) -> Words:
    """The first word of the position of each channel."""
    return HASHES[hash].positions(pa.array(range(channels)).cast("string"))[0]


@inlined
def _bid(key: np.uint64, channel: np.uint64) -> np.uint64:
    word = key ^ channel
    word = (word ^ (word >> np.uint64(33))) * _MIX1
    word = (word ^ (word >> np.uint64(33))) * _MIX2
    return word ^ (word >> np.uint64(33))


@compiled
def _highest(keys: Words, bidders: Words, out: Channels) -> None:
    for row in range(len(out)):
        winner, best = 0, _bid(keys[row], bidders[0])
        for channel in range(1, len(bidders)):
            bid = _bid(keys[row], bidders[channel])
            if bid > best:
                winner, best = channel, bid
        out[row] = winner
