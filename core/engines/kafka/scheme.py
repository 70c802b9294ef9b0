"""The kafka scheme: the partition in which Kafka's producers put a record with a key."""

from adapt.core.engines.kafka.hash import kafka_hash
from adapt.core.engines.modulo import HashModulo


class KafkaPartitioner(HashModulo):
    """The placement of keyed records by the Java client and by every `murmur2` partitioner, bit for bit.

    The channel is the positive part of murmur2 of the serialized key, modulo the partitions. Strings are serialized as
    UTF-8, integers as 8 bytes big-endian, binary keys as they are. Records without a key have no place of their own in
    Kafka; here null is the empty key, as in librdkafka (`kafka_hash`).

    Raises:
        UsageError: there is no channel, or 2^31 or more.

    Source: users and peers, section 5.1; held against librdkafka by the tests.
    """

    __slots__ = ()
    hash = staticmethod(kafka_hash)
