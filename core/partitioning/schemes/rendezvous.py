"""Rendezvous hashing: the channel with the highest bid wins."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.errors import UsageError
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
    With weights a bid is read as a number u in (0, 1), its leading 53 bits and a half, and becomes -weight / ln u, so
    that channels win in proportion to their weights. O(N) per key.

    Attributes:
        weights: One per channel, above 0. Default: equal weights.

    Raises:
        UsageError: there is no channel, or 2^31 or more; or the weights are not one finite number above 0 per channel.

    Source: Thaler and Ravishankar, Using Name-Based Mappings to Increase Hit Rates (1998); the weights, Schindelhauer
    and Schomaker, Weighted Distributed Hash Tables (2005), the logarithmic method.
    """

    channels: int
    hash: HashName = HashName.MURMUR3
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_channels(self.channels)
        if self.weights is None:
            return
        if len(self.weights) != self.channels or not all(math.isfinite(each) and each > 0 for each in self.weights):
            raise UsageError(
                f"weights must be {self.channels} numbers above 0, one per channel (got {list(self.weights)})"
            )

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return self.of_words(HASHES[self.hash].positions(keys)[0])

    def of_words(self, words: Words) -> Channels:
        """The channel of each key by the first word of its position."""
        bidders, channels = _bidders(self.channels, self.hash), np.empty(len(words), np.int32)
        if self.weights is None:
            _highest(words, bidders, channels)
        else:
            _highest_weighted(words, bidders, np.array(self.weights), channels)
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


@compiled
def _highest_weighted(keys: Words, bidders: Words, weights: NDArray[np.float64], out: Channels) -> None:
    for row in range(len(out)):
        winner, best = 0, -1.0
        for channel in range(len(bidders)):
            unit = (np.float64(_bid(keys[row], bidders[channel]) >> np.uint64(11)) + 0.5) / 2.0**53
            bid = -weights[channel] / np.log(unit)
            if bid > best:
                winner, best = channel, bid
        out[row] = winner
