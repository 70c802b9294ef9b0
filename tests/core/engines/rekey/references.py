"""Plain forms of engines' hashes, and plans to rekey."""

import zlib

import mmh3
import numpy as np

from adapt.core.engines.names import Engine
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from tests.core.engines.flink.test_hash import plain_code, utf16
from tests.core.engines.flink_sql.test_hash import code_of
from tests.core.engines.kafka.test_hash import plain as kafka_plain
from tests.core.engines.spark.test_hash import plain as spark_plain
from tests.core.engines.test_placements import sent


def group_of_code(code, groups):
    """Flink's key group of a Java hash code."""
    mixed = mmh3.hash((code % 2**32).to_bytes(4, "little"), 0)
    return (0 if mixed == -(2**31) else abs(mixed)) % groups


def in_java(key):
    """The hash code of a `String` or `Long`."""
    if isinstance(key, str):
        return plain_code(utf16(key))
    return (key % 2**64) ^ (key % 2**64 >> 32)


def hashed(key):
    """As Spark hashes it."""
    return (
        key.to_bytes(8, "little", signed=True)
        if isinstance(key, int)
        else key.encode()
        if isinstance(key, str)
        else key
    )


CHANNELS_OF = {
    Engine.SPARK: lambda key, n, _: spark_plain(hashed(key)) % n,
    Engine.KAFKA: lambda key, n, _: kafka_plain(sent(key)) % n,
    Engine.LIBRDKAFKA: lambda key, n, _: zlib.crc32(sent(key)) % n,
    Engine.FLINK: lambda key, n, groups: group_of_code(in_java(key), groups) * n // groups,
    Engine.FLINK_SQL: lambda key, n, groups: group_of_code(code_of(key), groups) * n // groups,
}
"""The channel of a key, from the definition of each engine."""


def keys_of(key_type, number):
    """Distinct keys, some of them awkward."""
    match key_type:
        case KeyType.STRING:
            return ["", "é~", "日本", *(f"user-{each}" for each in range(number - 3))]
        case KeyType.INT64:
            return [1 - 2**48, 2**48 - 1, *range(-5, number - 7)]
        case KeyType.BINARY:
            return [each.to_bytes(3, "big") for each in range(number)]


def plan_of(engine, key_type, channels, pinned, split, groups=None):
    """A plan that pins and splits the first keys, at random."""
    chance = np.random.default_rng(channels)
    keys = keys_of(key_type, pinned + split)
    splits = {key: tuple(chance.permutation(channels)[: min(channels, 4)].tolist()) for key in keys[:split]}
    pins = {key: int(chance.integers(channels)) for key in keys[split:]}
    return Plan(Scheme.HYBRID, channels, key_type, base=engine, explicit=pins, splits=splits, max_parallelism=groups)
