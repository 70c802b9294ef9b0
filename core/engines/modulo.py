"""Placement by hash modulo channels, as in most engines."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.partitioner import ByColumn, Channels


@dataclass(frozen=True, slots=True)
class HashModulo(ByColumn):
    """Placement by hash modulo N; subclasses define the hash.

    Raises:
        UsageError: the number of channels is not from 1 to 2^31 - 1.
    """

    channels: int

    def __post_init__(self) -> None:
        check_channels(self.channels)

    @staticmethod
    def hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
        """The hash of each key; shape (rows,)."""
        raise NotImplementedError

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return np.mod(self.hash(keys), np.int32(self.channels))
