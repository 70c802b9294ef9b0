"""Kafka's murmur2: fixed vectors, a plain form, and librdkafka producing to its own mock cluster."""

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.kafka.hash import kafka_hash
from adapt.core.engines.kafka.scheme import KafkaPartitioner

VECTORS = {
    "": (275646681, 9),
    "a": (584102524, 12),
    "user": (843406574, 14),
    "user000001": (1331563115, 11),
    "é": (186971271, 7),
    "ключ": (2122343024, 0),
    "日本語": (1431860170, 10),
    "\N{GRINNING FACE}": (131881617, 1),
    "x" * 33: (1836250449, 1),
}
"""Key: positive part of murmur2, partition of 16."""


def plain(data):
    """MurmurHash2, 32 bits, from Kafka's seed, without its sign."""
    state = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 % 2**32
        word = (word ^ word >> 24) * 0x5BD1E995 % 2**32
        state = state * 0x5BD1E995 % 2**32 ^ word
    if data[whole:]:
        state = (state ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995 % 2**32
    state = (state ^ state >> 13) * 0x5BD1E995 % 2**32
    return (state ^ state >> 15) % 2**31


@pytest.mark.parametrize("key", VECTORS)
def test_a_key_hashes_as_in_kafka(key):
    hash, partition = VECTORS[key]
    assert kafka_hash(pa.array([key])).tolist() == [hash]
    assert KafkaPartitioner(16).channel_of(key) == partition


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_bytes_agree_with_the_plain_form(keys):
    assert kafka_hash(pa.array(keys, pa.binary())).tolist() == [plain(key) for key in keys]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_hash_as_the_long_serializer_writes_them(keys):
    expected = [plain(b"" if key is None else key.to_bytes(8, "big", signed=True)) for key in keys]
    assert kafka_hash(pa.array(keys, pa.int64())).tolist() == expected


PARTITIONS = 4
"""Of a topic that librdkafka's mock cluster makes by itself."""


@pytest.fixture(scope="module")
def partitions_of():
    """Sends records with these keys through librdkafka's `murmur2` partitioner, and tells where each was put."""
    producer = confluent_kafka.Producer(
        {"test.mock.num.brokers": 3, "bootstrap.servers": "mock", "partitioner": "murmur2"}
    )

    def produce(keys):
        found = {}

        def delivered(row):
            def note(error, message):
                assert error is None
                found[row] = message.partition()

            return note

        for row, key in enumerate(keys):
            producer.produce("adapt", value=b"", key=key, on_delivery=delivered(row))
        assert producer.flush(60) == 0
        return [found[row] for row in range(len(keys))]

    return produce


def test_librdkafka_puts_every_key_alike(partitions_of):
    chance = np.random.default_rng(9)
    keys = [chance.bytes(length % 70) for length in range(2000)]
    keys += [f"clé-{number}-\N{GRINNING FACE}".encode() for number in range(500)]
    placed = KafkaPartitioner(PARTITIONS).channels_of(pa.array(keys, pa.binary())).tolist()
    assert set(placed) == set(range(PARTITIONS))
    assert placed == partitions_of(keys)


def test_librdkafka_puts_big_endian_integers_and_null_alike(partitions_of):
    keys = [None, 0, -1, 2**63 - 1, -(2**63), *np.random.default_rng(10).integers(-(2**40), 2**40, 500).tolist()]
    sent = [None if key is None else key.to_bytes(8, "big", signed=True) for key in keys]
    placed = KafkaPartitioner(PARTITIONS).channels_of(pa.array(keys, pa.int64())).tolist()
    assert placed == partitions_of(sent)
