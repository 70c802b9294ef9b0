"""The risingwave scheme: the actor of each key by its virtual node."""

from dataclasses import dataclass

import numpy as np

from adapt.core.engines.hash_functions.crc32 import crc32
from adapt.core.engines.placement import EnginePartitioner, Hashes
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import KeyBytes, one_key
from adapt.core.keys.partitioner import Channels
from adapt.core.keys.typed_keys import narrowed
from adapt.core.stream import KeyType

VNODES = 256
"""Default number of virtual nodes."""

_NULL = (0xFFFFFFF0).to_bytes(4, "little")


def risingwave_hash(keys: KeyBytes, key_type: KeyType) -> Hashes:
    """RisingWave's CRC-32 of a distribution key; shape (rows,).

    A text ends in the byte 255, a byte array begins with its length, as in Rust's `Hash`.
    """
    match key_type:
        case KeyType.INT16:
            return crc32(narrowed(keys, "<i2"))
        case KeyType.INT32:
            return crc32(narrowed(keys, "<i4"))
        case KeyType.INT64:
            return crc32(keys)
        case KeyType.BINARY:
            return crc32(keys, is_length_before=True)
    return crc32(keys, after=b"\xff")


@dataclass(frozen=True, slots=True)
class RisingWavePartitioner(EnginePartitioner):
    """Even ranges of vnodes, the hash modulo 256; longer ranges first.

    Keys are of type varchar, smallint, integer, bigint or bytea. Null is hashed as a word of its own.

    Source: RisingWave, src/common/src/hash/consistent_hash: vnode.rs and mapping.rs.
    """

    channels: int  # N, the actors of a fragment
    key_type: KeyType | None = None

    def __post_init__(self) -> None:
        check_channels(self.channels, VNODES)

    def of_bytes(self, keys: KeyBytes, key_type: KeyType) -> Channels:
        """The channel of each key, without nulls."""
        vnodes = risingwave_hash(keys, key_type) & np.uint32(VNODES - 1)
        short, longer = divmod(VNODES, self.channels)
        sizes = np.full(self.channels, short) + (np.arange(self.channels) < longer)
        return np.asarray(np.repeat(np.arange(self.channels, dtype=np.int32), sizes)[vnodes])

    def of_null(self, key_type: KeyType) -> int:  # noqa: ARG002 - of every type
        """The channel of the null key."""
        return int(self.of_bytes(one_key(_NULL), KeyType.INT64)[0])
