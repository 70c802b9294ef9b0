"""The definitions of librdkafka's partitioners."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.engines.engine import EngineDefinition
from adapt.core.engines.hash_functions.crc32 import crc32
from adapt.core.engines.hash_functions.murmur3_32 import fnv1a
from adapt.core.engines.kafka.engine import ENGINE as KAFKA
from adapt.core.engines.kafka.hash import murmur2
from adapt.core.engines.names import Engine
from adapt.core.engines.placement import BytesHash, HashModulo, hash_of_column, serialized
from adapt.core.keys.columns import KeyBytes
from adapt.core.keys.partitioner import AtRandom
from adapt.core.stream import KeyType

_SPREAD = "A random partition, sticky for `sticky.partitioning.linger.ms`."
_AS_EMPTY = "The partition of the empty key."
_HASHED = "The partition of its hash."


def crc32_of_sent(keys: KeyBytes, key_type: KeyType) -> NDArray[np.uint32]:
    """The CRC of each key as it is sent; shape (rows,)."""
    return crc32(serialized(keys, key_type))


def fnv1a_of_sent(keys: KeyBytes, key_type: KeyType) -> NDArray[np.uint32]:
    """FNV-1a of each key as it is sent; shape (rows,).

    Read as a signed number, without its sign.
    """
    hashes = fnv1a(serialized(keys, key_type))
    return np.minimum(hashes, np.negative(hashes))


def definition(engine: Engine) -> EngineDefinition:
    """The definition of one of the seven partitioners.

    Source: librdkafka, src/rdkafka_msg.c and src/rdfnv1a.c; tested against its own producer.
    """
    partitioner = engine.value.partition(":")[2]
    hash, title, at_random = _PARTITIONERS[partitioner]
    return replace(
        KAFKA,
        title="librdkafka",
        hash=partial(hash_of_column, hash),
        hash_title=title,
        placement=lambda channels, _: HashModulo(channels, hash, at_random),
        null_key=_AS_EMPTY if at_random is AtRandom.NONE else _SPREAD,
        empty_key=_HASHED if at_random in (AtRandom.NONE, AtRandom.NULL) else _SPREAD,
        export=None,
        at_random=at_random,
    )


_FNV1A = "FNV-1a of 32 bits, without its sign"

_PARTITIONERS: dict[str, tuple[BytesHash, str, AtRandom]] = {
    "random": (crc32_of_sent, "none: every key goes to a random partition", AtRandom.ALL),
    "consistent": (crc32_of_sent, "CRC-32", AtRandom.NONE),
    "consistent_random": (crc32_of_sent, "CRC-32", AtRandom.NULL_AND_EMPTY),
    "murmur2": (murmur2, KAFKA.hash_title, AtRandom.NONE),
    "murmur2_random": (murmur2, KAFKA.hash_title, AtRandom.NULL),
    "fnv1a": (fnv1a_of_sent, _FNV1A, AtRandom.NONE),
    "fnv1a_random": (fnv1a_of_sent, _FNV1A, AtRandom.NULL),
}
