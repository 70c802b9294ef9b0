"""Partitioners: functions from keys to channels."""

from abc import ABC, abstractmethod
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.columns import column_of
from adapt.core.stream import Key

Channels: TypeAlias = NDArray[np.int32]
"""Channels, shape (rows,), each in [0, N)."""


class Partitioner(Protocol):
    """A total, fixed function from keys to channels 0 .. N-1."""

    @property
    def channels(self) -> int:
        """N, the number of parallel channels."""

    def channels_of(self, keys: pa.Array) -> Channels:
        """The channel of each key of a column; null is a key."""

    def channel_of(self, key: Key) -> int:
        """The channel of one key, as by `channels_of`."""


class ByColumn(ABC):
    """A partitioner that looks up a single key as a column."""

    __slots__ = ()

    @abstractmethod
    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""

    def channel_of(self, key: Key) -> int:
        """The channel of one key."""
        return int(self.channels_of(column_of(key))[0])
