"""Jump consistent hashing: channels come and go at the end."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adapt.core.compiled import compiled
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import Words
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import ByColumn, Channels

_MULTIPLIER = np.uint64(2862933555777941757)


@dataclass(frozen=True, slots=True)
class JumpHash(ByColumn):
    """Jump consistent hash: each new channel takes keys evenly from all others.

    The generator starts from the first word of a key's position. O(log N) per key, no memory.

    Source: Lamping and Veach, A Fast, Minimal Memory, Consistent Hash Algorithm (2014), figure 1.
    """

    channels: int  # N, from 1 to 2^31 - 1
    hash: HashName = HashName.MURMUR3

    def __post_init__(self) -> None:
        check_channels(self.channels)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return self.of_words(HASHES[self.hash].positions(keys)[0])

    def of_words(self, words: Words) -> Channels:
        """The channel of each key by the first word of its position."""
        channels = np.empty(len(words), np.int32)
        _jump(words, self.channels, channels)
        return channels


@compiled
def _jump(words: Words, channels: int, out: Channels) -> None:
    for row in range(len(out)):
        state = words[row]
        here, following = np.int64(0), np.int64(0)
        while following < channels:
            here = following
            state = state * _MULTIPLIER + np.uint64(1)
            # The next count at which the key jumps; one division and one product of doubles, the same on every machine.
            following = np.int64((here + 1) * (2.0**31 / np.float64((state >> np.uint64(33)) + np.uint64(1))))
        out[row] = here
