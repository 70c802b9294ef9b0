"""The spark scheme: the placement of a Spark SQL shuffle by key."""

from dataclasses import dataclass

from adapt.core.engines.placement import BytesHash, HashModulo
from adapt.core.engines.spark.hash import SEED, spark_hash_of_bytes, spark_hash_of_key
from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class SparkPartitioner(HashModulo):
    """The exact placement of `repartition(N, key)`, `groupBy(key)` and joins: pmod(hash(key), N).

    Null hashes to 42.

    Source: users and peers, section 5.1; tested against Spark.
    """

    hash: BytesHash = spark_hash_of_bytes

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:
        """The channel of one key by its bytes."""
        return spark_hash_of_key(key, self._in_source(key_type)) % self.channels

    def of_null(self, key_type: KeyType) -> int:  # noqa: ARG002 - alike
        """The channel of the null key."""
        return SEED % self.channels
