"""The kafka scheme: the placement of Kafka's producers in Java."""

from dataclasses import dataclass

from adapt.core.engines.kafka.hash import murmur2
from adapt.core.engines.placement import BytesHash, HashModulo
from adapt.core.keys.partitioner import AtRandom


@dataclass(frozen=True, slots=True)
class KafkaPartitioner(HashModulo):
    """The exact placement of the Java client and of every `murmur2` partitioner.

    The channel is the positive part of murmur2 of the serialized key, modulo the partitions. Strings are serialized as
    UTF-8, integers as 8 bytes big-endian, binary keys unchanged. Records without a key have no fixed partition;
    here null is the empty key, as in librdkafka (`kafka_hash`).

    Source: users and peers, section 5.1; tested against librdkafka.
    """

    hash: BytesHash = murmur2
    at_random: AtRandom = AtRandom.NULL
