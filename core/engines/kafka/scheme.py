"""The kafka scheme: the placement of Kafka's producers in Java."""

from dataclasses import dataclass

from adapt.core.engines.kafka.hash import murmur2, murmur2_of_key
from adapt.core.engines.placement import WIDTHS, BytesHash, HashModulo
from adapt.core.keys.partitioner import AtRandom
from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class KafkaPartitioner(HashModulo):
    """The exact placement of the Java client and of every `murmur2` partitioner.

    The channel is the positive part of murmur2 of the serialized key, modulo the partitions. Strings are serialized as
    UTF-8, integers big-endian in the bytes of their type, binary keys unchanged. Records without a key have no fixed
    partition; here null is the empty key, as in librdkafka (`kafka_hash`).

    Source: users and peers, section 5.1; tested against librdkafka.
    """

    hash: BytesHash = murmur2
    at_random: AtRandom = AtRandom.NULL

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:
        """The channel of one key by its bytes."""
        source = self._in_source(key_type)
        if source in WIDTHS:
            key = key[: WIDTHS[source]][::-1]
        elif source is KeyType.INT8:  # sent as text
            return HashModulo.channel_of_bytes(self, key, key_type)
        return (murmur2_of_key(key) & 0x7FFFFFFF) % self.channels
