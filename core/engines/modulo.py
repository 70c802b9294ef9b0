"""The placement of most engines: a hash of the key modulo the channels."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.partitioner import ByColumn, Channels


@dataclass(frozen=True, slots=True)
class HashModulo(ByColumn):
    """The channel of a key is its hash modulo N; a subclass says which hash.

    Raises:
        UsageError: there is no channel, or 2^31 or more.
    """

    channels: int

    def __post_init__(self) -> None:
        check_channels(self.channels)

    @staticmethod
    def hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
        """The number of each key that is taken modulo N; shape (rows,)."""
        raise NotImplementedError

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return np.mod(self.hash(keys), np.int32(self.channels))
