"""The kafka scheme: the partition in which Kafka's producers put a record with a key."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adapt.core.engines.kafka.hash import kafka_hash
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import column_of
from adapt.core.keys.partitioner import Channels
from adapt.core.stream import Key


@dataclass(frozen=True, slots=True)
class KafkaPartitioner:
    """The placement of keyed records by the Java client and by every `murmur2` partitioner, bit for bit.

    The channel is the positive part of murmur2 of the serialized key, modulo the partitions. Strings are serialized as
    UTF-8, integers as 8 bytes big-endian, binary keys as they are. Records without a key have no place of their own in
    Kafka; here null is the empty key, as in librdkafka (`kafka_hash`).

    Raises:
        UsageError: there is no channel, or 2^31 or more.

    Source: users and peers, section 5.1; held against librdkafka by the tests.
    """

    channels: int

    def __post_init__(self) -> None:
        check_channels(self.channels)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return np.mod(kafka_hash(keys), np.int32(self.channels))

    def channel_of(self, key: Key) -> int:
        """The channel of one key."""
        return int(self.channels_of(column_of(key))[0])
