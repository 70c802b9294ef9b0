"""The definitions of Pulsar's placements."""

from functools import partial

from adapt.core.engines.engine import EngineDefinition, OtherKeys, WorkUnits
from adapt.core.engines.hash_functions.java import string_codes
from adapt.core.engines.names import Engine
from adapt.core.engines.placement import BytesHash, Hashes, HashModulo, as_base64, hash_of_column
from adapt.core.engines.pulsar.scheme import MOST_CONSUMERS, PulsarPartitioner, murmur3_31
from adapt.core.keys.columns import KeyBytes
from adapt.core.keys.partitioner import AtRandom
from adapt.core.stream import KeyType

_MURMUR3 = "MurmurHash3 of 32 bits, without its sign bit"


def java_hash(keys: KeyBytes, key_type: KeyType) -> Hashes:
    """Java's `hashCode` of each text, without the sign bit."""
    return string_codes(as_base64(keys, key_type)) & 0x7FFFFFFF


def murmur3_of_sent(keys: KeyBytes, key_type: KeyType) -> Hashes:
    """MurmurHash3 of each text, without the sign bit."""
    return murmur3_31(as_base64(keys, key_type), KeyType.STRING)


def definition(engine: Engine) -> EngineDefinition:
    """The definition of Key_Shared, or of a hashing scheme of partitioned topics.

    Source: Pulsar, RoundRobinPartitionMessageRouterImpl.java, JavaStringHash.java and Murmur3_32Hash.java.
    """
    if engine is Engine.PULSAR:
        return _KEY_SHARED
    if engine is Engine.PULSAR_JAVA:
        return _partitioned(java_hash, "Java's `hashCode` of text, without its sign bit (`JavaStringHash`)")
    return _partitioned(murmur3_of_sent, f"{_MURMUR3} (`Murmur3_32Hash`)")


_KEY_SHARED = EngineDefinition(
    title="Pulsar, Key_Shared",
    hash=partial(hash_of_column, murmur3_31),
    hash_title=f"{_MURMUR3}, modulo 65,536 slots",
    placement=lambda channels, _: PulsarPartitioner(channels),
    export=None,
    channel="consumer of a Key_Shared subscription",
    worker="consumer",
    default_channels=1,
    channels_setting="subscriptionType",
    key_groups=None,
    null_key="Hashed as the text `NONE_KEY`.",
    empty_key="The consumer of its hash.",
    rescale="A new consumer takes half of the largest range; the range of one that leaves goes to a neighbor. For"
    " auto-split ranges, in the order in which consumers came.",
    units=WorkUnits(
        name="hash ranges",
        short="ranges",
        workers="consumers",
        count="consumers",
        default=lambda consumers: consumers,
        most=MOST_CONSUMERS,
        note="Ranges are halved, so they are even only for a power of two consumers.",
        owners=None,
    ),
    other_keys=OtherKeys.TEXT,
)


def _partitioned(hash: BytesHash, title: str) -> EngineDefinition:
    return EngineDefinition(
        title="Pulsar, partitioned topic",
        hash=partial(hash_of_column, hash),
        hash_title=title,
        placement=lambda channels, _: HashModulo(channels, hash, AtRandom.NULL),
        export=None,
        channel="partition of a topic",
        worker="consumer of a Failover subscription",
        default_channels=1,
        channels_setting="defaultNumPartitions",
        key_groups=None,
        null_key="Producers send such messages to the partitions in turn.",
        empty_key="The partition of its hash.",
        rescale="Partitions can only be added; then new messages of most keys go to another partition.",
        units=WorkUnits(
            name="partitions",
            short="partitions",
            workers="consumers",
            count="consumers",
            default=None,
            most=None,
            note="A Failover subscription gives each partition to one consumer.",
        ),
        at_random=AtRandom.NULL,
        other_keys=OtherKeys.TEXT,
    )
