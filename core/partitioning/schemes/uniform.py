"""Uniform scheme: the hash of a key modulo the number of channels."""

from dataclasses import dataclass

import pyarrow as pa

from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import ByBytes, Channels
from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class UniformPartitioner(ByBytes):
    """Spreads keys evenly; a rescale moves nearly all of them.

    Source: partitioning functions, section 2 (the hash that consistent hashing replaces); docs/plan-format.md.
    """

    channels: int
    hash: HashName = HashName.MURMUR3

    def __post_init__(self) -> None:
        check_channels(self.channels)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return HASHES[self.hash].modulo(keys, self.channels)

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of one key by its bytes."""
        return HASHES[self.hash].number(key) % self.channels
