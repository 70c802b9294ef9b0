"""Hybrid scheme: pinned keys, and a hash scheme for all others."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.keys.columns import one_array
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.partitioner import AtRandom, Channels, Partitioner, random_keys
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap, refuse_out_of_range
from adapt.core.stream import Key


@dataclass(frozen=True, init=False, slots=True)
class HybridPartitioner:
    """Looks keys up among the pinned ones, then asks the base.

    Source: partitioning functions, section 4.1.1, Algorithm 1.
    """

    explicit: ExplicitMap  # H_p, the pinned keys with their channels, readable as a mapping
    base: Partitioner  # H_c, the partitioner of every other key: the paper's ring, or an engine's own placement

    def __init__(self, explicit: Mapping[Key, int], base: Partitioner) -> None:
        """Put an explicit map before a base.

        Any mapping of keys of one type serves.
        """
        columns = ExplicitMap.from_mapping(explicit)
        refuse_out_of_range(columns.column, columns.channels, base.channels)
        object.__setattr__(self, "explicit", columns)
        object.__setattr__(self, "base", base)

    @property
    def channels(self) -> int:
        """N, the number of parallel channels."""
        return self.base.channels

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        column = one_array(keys)
        if isinstance(self.base, ConsistentHash):  # hash each key once, for both
            hashed = HashedKeys.from_column(column, self.base.hash)
            channels = self.base.channels_at(hashed.high, hashed.low)
            rows = self.explicit.rows_of_hashed(hashed, column.type)
        else:
            channels, rows = self.base.channels_of(column), self.explicit.rows_of(column)
        if len(self.explicit):
            _override(channels, rows, self.explicit.channels)
        return channels

    def channel_of(self, key: Key) -> int:
        """The channel of one key; raises as `channels_of` does."""
        pinned = self.explicit.pinned(key)
        return self.base.channel_of(key) if pinned is None else pinned

    def __reduce__(self) -> tuple[type["HybridPartitioner"], tuple[ExplicitMap, Partitioner]]:
        return HybridPartitioner, (self.explicit, self.base)


def placed_at_random(partitioner: Partitioner, keys: pa.Array) -> NDArray[np.bool_]:
    """Which keys have no fixed channel; shape (rows,)."""
    if isinstance(partitioner, HybridPartitioner):
        mask = placed_at_random(partitioner.base, keys)
        return mask & (partitioner.explicit.rows_of(keys) < 0) if mask.any() else mask
    return random_keys(getattr(partitioner, "at_random", AtRandom.NONE), keys)


@compiled
def _override(channels: Channels, rows: NDArray[np.int32], explicit: Channels) -> None:
    """Set the channel of each pinned key, by its row in the explicit map; branch-free."""
    for key in range(len(channels)):
        row = rows[key]
        mapped = explicit[max(row, 0)]
        channels[key] = mapped if row >= 0 else channels[key]
