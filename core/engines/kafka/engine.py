"""The definition of Kafka."""

from adapt.core.engines.engine import EngineDefinition, OtherKeys, WorkUnits
from adapt.core.engines.kafka.export import kafka_bundle
from adapt.core.engines.kafka.hash import kafka_hash
from adapt.core.engines.kafka.scheme import KafkaPartitioner
from adapt.core.keys.partitioner import AtRandom
from adapt.core.stream import KeyType

ENGINE = EngineDefinition(
    title="Kafka",
    hash=kafka_hash,
    hash_title="murmur2",
    placement=lambda channels, _: KafkaPartitioner(channels),
    export=kafka_bundle,
    channel="partition of a topic",
    worker="consumer of a group",
    default_channels=1,
    channels_setting="num.partitions",
    key_groups=None,
    null_key="The Java producer sends such records to a random partition, sticky for a batch.",
    empty_key="The partition of its hash.",
    rescale="Consumers rebalance: whole partitions move between consumers, and keys keep their partition. Partitions"
    " can only be added; then new records of most keys go to another partition, and old records stay.",
    units=WorkUnits(
        name="partitions",
        short="partitions",
        workers="consumers",
        count="consumers",
        default=None,
        most=None,
        note="Range, round-robin and sticky assignors agree on a single topic; range assigns further topics with as"
        " many partitions to the same consumers. Adding partitions moves keys to other partitions.",
    ),
    at_random=AtRandom.NULL,
    key_types=frozenset({KeyType.INT16, KeyType.INT32, KeyType.INT64}),
    other_keys=OtherKeys.ASSUMED,
)
