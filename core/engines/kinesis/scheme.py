"""The kinesis scheme: the shard of each partition key."""

from dataclasses import dataclass, field

import numpy as np

from adapt.core.engines.hash_functions.md5 import md5
from adapt.core.engines.kinesis.shards import even_shards
from adapt.core.engines.placement import EnginePartitioner
from adapt.core.engines.serialized import as_text
from adapt.core.errors import UsageError
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import KeyBytes
from adapt.core.keys.partitioner import Channels
from adapt.core.keys.positions import SortedPositions
from adapt.core.stream import KeyType

MOST_SHARDS = 1_000_000


@dataclass(frozen=True, slots=True)
class KinesisPartitioner(EnginePartitioner):
    """The shard whose hash-key range has the MD5 of the key.

    Partition keys are text; an integer is hashed in decimal, a binary key unchanged. Kinesis has no null or empty keys;
    here both hash as empty text.

    Source: Kinesis Data Streams API reference, PutRecord.
    """

    channels: int  # N, the open shards in the order of their ranges
    shards: tuple[int, ...] = ()  # the first hash key of each shard, ascending. Default: even ranges
    key_type: KeyType | None = None
    _ends: SortedPositions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_channels(self.channels, MOST_SHARDS)
        if self.shards and len(self.shards) != self.channels:
            raise UsageError(
                f"the shard list has {len(self.shards)} open shards, so --channels must be {len(self.shards)}"
                f" (got {self.channels})"
            )
        starts = self.shards or even_shards(self.channels)
        ends = [start - 1 for start in (*starts[1:], 2**128)]
        high = np.array([end >> 64 for end in ends], np.uint64)
        low = np.array([end & (2**64 - 1) for end in ends], np.uint64)
        object.__setattr__(self, "_ends", SortedPositions.from_sorted(high, low))

    def of_bytes(self, keys: KeyBytes, key_type: KeyType) -> Channels:
        """The channel of each key, without nulls."""
        return self._ends.first_at_or_after(*md5(as_text(keys, key_type))).astype(np.int32)
