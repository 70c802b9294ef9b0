"""Maglev hashing: keys look up a table that channels fill in turns."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import ByColumn, Channels

TABLE = 65537
"""M, the size of the table; a prime, the paper's smaller size."""


@dataclass(frozen=True, slots=True)
class Maglev(ByColumn):
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
