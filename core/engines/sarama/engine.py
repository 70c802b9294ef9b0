"""The definition of Sarama."""

from dataclasses import replace
from functools import partial

from adapt.core.engines.kafka.engine import ENGINE as KAFKA
from adapt.core.engines.librdkafka.engine import fnv1a_of_sent
from adapt.core.engines.placement import HashModulo, hash_of_column
from adapt.core.keys.partitioner import AtRandom

ENGINE = replace(
    KAFKA,
    title="Sarama",
    hash=partial(hash_of_column, fnv1a_of_sent),
    hash_title="FNV-1a of 32 bits, signed; its remainder without the sign (`NewHashPartitioner`)",
    placement=lambda channels, _: HashModulo(channels, fnv1a_of_sent, AtRandom.NULL),
    null_key="A random partition.",
    export=None,
    at_random=AtRandom.NULL,
)
"""As librdkafka's fnv1a_random, which is made after it.

Source: Sarama, partitioner.go; librdkafka, src/rdfnv1a.c.
"""
