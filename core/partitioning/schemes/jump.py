"""Hashing schemes of other papers: jump, Maglev and rendezvous."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import Words
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import ByBytes, Channels
from adapt.core.stream import KeyType

_MULTIPLIER = np.uint64(2862933555777941757)


@dataclass(frozen=True, slots=True)
class JumpHash(ByBytes):
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

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of one key by its bytes."""
        return self.of_words(np.array([HASHES[self.hash].position(key)[0]], np.uint64)).item()


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


TABLE = 65537
"""M, the size of the table; a prime, the paper's smaller size."""


@dataclass(frozen=True, slots=True)
class Maglev(ByBytes):
    """Spreads keys almost evenly.

    A rescale also moves a few keys between remaining channels.

    Channel c tries the entries offset, offset + skip, offset + 2 skip, ... modulo M, with the offset the hash of the
    text `c#0` modulo M, and the skip that of `c#1` modulo M - 1, plus 1 (both decimal, from 0). In turns, from channel
    0, each takes its first free entry until the table is full. A key belongs to the entry of its hash modulo M.
    Channels differ by at most one entry, so with N near M a channel has 1 or 2 of them; the paper wants M above 100 N.

    Source: Eisenbud et al., Maglev: A Fast and Reliable Software Network Load Balancer (NSDI 2016), section 3.4.
    """

    channels: int  # N, from 1 to M
    hash: HashName = HashName.MURMUR3
    _table: Channels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_channels(self.channels, TABLE)
        object.__setattr__(self, "_table", _table(self.channels, self.hash))

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return self._table[HASHES[self.hash].modulo(keys, TABLE)]

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of one key by its bytes."""
        return self._table.item(HASHES[self.hash].number(key) % TABLE)

    @property
    def table(self) -> Channels:
        """The channel of each entry, read-only; shape (M,)."""
        return self._table

    def __reduce__(self) -> tuple[type["Maglev"], tuple[int, HashName]]:
        return Maglev, (self.channels, self.hash)


@lru_cache(maxsize=8)
def _table(channels: int, hash: HashName) -> Channels:
    """The channel of each entry, shape (M,); cached for replays, which use one table every period."""
    offsets = HASHES[hash].modulo(_names(channels, 0), TABLE)
    skips = HASHES[hash].modulo(_names(channels, 1), TABLE - 1) + 1
    table = np.full(TABLE, -1, np.int32)
    _fill(offsets.astype(np.int64), skips.astype(np.int64), table)
    table.setflags(write=False)
    return table


def _names(channels: int, number: int) -> pa.Array:
    """The texts `c#number`."""
    return pa.array([f"{channel}#{number}" for channel in range(channels)])


@compiled
def _fill(tried: NDArray[np.int64], skips: NDArray[np.int64], table: Channels) -> None:
    """Give each entry a channel; `tried` is the entry that each channel tries next."""
    filled = 0
    while True:
        for channel in range(len(tried)):
            while table[tried[channel]] >= 0:
                tried[channel] = (tried[channel] + skips[channel]) % len(table)
            table[tried[channel]] = channel
            filled += 1
            if filled == len(table):
                return


_MIX1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX2 = np.uint64(0xC4CEB9FE1A85EC53)


@dataclass(frozen=True, slots=True)
class Rendezvous(ByBytes):
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

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of one key by its bytes."""
        return self.of_words(np.array([HASHES[self.hash].position(key)[0]], np.uint64)).item()


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
