"""The spark scheme: where Spark SQL puts a key when it shuffles by it."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adapt.core.engines.spark.hash import spark_hash
from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import column_of
from adapt.core.keys.partitioner import Channels
from adapt.core.stream import Key


@dataclass(frozen=True, slots=True)
class SparkPartitioner:
    """The placement of `repartition(N, key)`, `groupBy(key)` and joins, bit for bit: pmod(hash(key), N).

    It holds for one key column of string, binary or bigint; an int column hashes otherwise. Null is where its hash, 42,
    is.

    Raises:
        UsageError: there is no channel, or 2^31 or more.

    Source: users and peers, section 5.1; held against a live Spark session by the tests.
    """

    channels: int

    def __post_init__(self) -> None:
        check_channels(self.channels)

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        return np.mod(spark_hash(keys), np.int32(self.channels))

    def channel_of(self, key: Key) -> int:
        """The channel of one key."""
        return int(self.channels_of(column_of(key))[0])
