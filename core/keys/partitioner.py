"""What every partitioner can do: say which channel a key belongs to."""

from abc import ABC, abstractmethod
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.columns import column_of
from adapt.core.stream import Key

Channels: TypeAlias = NDArray[np.int32]
"""One channel a row, shape (rows,), each in [0, N)."""


class Partitioner(Protocol):
    """A total, fixed function from keys to channels 0 .. N-1 (partitioning functions, section 2)."""

    @property
    def channels(self) -> int:
        """N, the number of parallel channels."""

    def channels_of(self, keys: pa.Array) -> Channels:
        """The channel of each key of a column (string, large_string, int64 or binary; null is a key)."""

    def channel_of(self, key: Key) -> int:
        """The channel of one key; the same as `channels_of` of a column holding it."""


class ByColumn(ABC):
    """A partitioner that looks one key up as it does a column of them."""

    __slots__ = ()

    @abstractmethod
    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""

    def channel_of(self, key: Key) -> int:
        """The channel of one key."""
        return int(self.channels_of(column_of(key))[0])
