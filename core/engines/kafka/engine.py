"""Kafka, as adapt knows it."""

from adapt.core.engines.engine import EngineDefinition, WorkUnits
from adapt.core.engines.kafka.export import kafka_bundle
from adapt.core.engines.kafka.hash import kafka_hash
from adapt.core.engines.kafka.scheme import KafkaPartitioner

ENGINE = EngineDefinition(
    title="Kafka",
    hash=kafka_hash,
    hash_title="Kafka's murmur2",
    placement=lambda channels, _: KafkaPartitioner(channels),
    export=kafka_bundle,
    channel="partition of a topic",
    worker="consumer of a group",
    default_channels=1,
    channels_setting="num.partitions",
    key_groups=None,
    null_key="Producers spread such records over the partitions, batch by batch; adapt places them as the empty key.",
    empty_key="The partition of its hash.",
    rescale="Consumers rebalance: whole partitions change their consumer, and keys keep their partition. Partitions can"
    " only be added: new records of most keys then go to another partition, and old ones stay.",
    units=WorkUnits(
        name="partitions",
        short="partitions",
        workers="consumers",
        count="consumers",
        default=None,
        most=None,
        note="Range, round-robin and sticky assignment all deal one topic so; range deals every further topic of as"
        " many partitions the same way, to the same consumers. More partitions give keys other partitions.",
    ),
)
