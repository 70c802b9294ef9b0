"""What clients do besides their documented partitioners is named, by literal implementations of theirs."""

import hashlib
import json
import zlib

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2  # of kafka-python: unsigned

from adapt.core.audit.explaining import audit_of
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.stream import KeyType
from tests.core.audit.topics import observed
from tests.core.plain_hashes import fnv1a

TEXTS = [f"user-{at}" for at in range(300)]
NUMBERS = [int(each) for each in np.random.default_rng(3).integers(-(10**6), 10**7, 300)]


def signed(word):
    return word - 2**32 if word >= 2**31 else word


def code(text):
    """Java's `String.hashCode`."""
    state = 0
    for letter in text:
        state = (31 * state + ord(letter)) % 2**32
    return signed(state)


def audited(keys, places, partitions, records=3, key_type=None):
    rows = np.repeat(np.arange(len(keys)), records)
    column = pa.array(keys)
    return audit_of(observed(column, rows, np.array(places)[rows], key_type), partitions, column[:0])


CLIENTS = {
    "murmur2 made positive by abs()": lambda key, n: abs(signed(murmur2(key.encode()))) % n,
    "murmur2 with its sign, modulo rounding down": lambda key, n: signed(murmur2(key.encode())) % n,
    "murmur2 as an unsigned number": lambda key, n: murmur2(key.encode()) % n,
    "CRC32 without its sign bit": lambda key, n: (zlib.crc32(key.encode()) & 0x7FFFFFFF) % n,
    "CRC32 made positive by abs()": lambda key, n: abs(signed(zlib.crc32(key.encode()))) % n,
    "FNV-1a as an unsigned number": lambda key, n: fnv1a(key.encode()) % n,
    "FNV-1a without its sign bit": lambda key, n: (fnv1a(key.encode()) & 0x7FFFFFFF) % n,
    "MurmurHash3 with its sign, modulo rounding down": lambda key, n: mmh3.hash(key) % n,
    "Java's hashCode of strings made positive by abs()": lambda key, n: abs(code(key)) % n,
    "MD5": lambda key, n: int(hashlib.md5(key.encode()).hexdigest(), 16) % n,
    "Java's murmur2 of text in JSON quotes": lambda key, n: (murmur2(json.dumps(key).encode()) & 0x7FFFFFFF) % n,
}


@pytest.mark.parametrize("partitions", [6, 12, 50])
@pytest.mark.parametrize("name", CLIENTS)
def test_one_client_is_one_producer(name, partitions):
    (only,) = audited(TEXTS, [CLIENTS[name](key, partitions) for key in TEXTS], partitions).producers
    assert (only.name, only.engines, only.share.share) == (name, (), 1)


SENT = {
    "Java's murmur2 of 4-byte integers": lambda key: murmur2(key.to_bytes(4, "big", signed=True)),
    "Java's murmur2 of 8-byte integers": lambda key: murmur2(key.to_bytes(8, "big", signed=True)),
    "Java's murmur2 of numbers as text": lambda key: murmur2(str(key).encode()),
}


@pytest.mark.parametrize("name", SENT)
def test_the_encoding_of_integers_is_named(name):
    places = [(SENT[name](key) & 0x7FFFFFFF) % 12 for key in NUMBERS]
    assert [each.name for each in audited(NUMBERS, places, 12).producers] == [name]
    as_text = audited([str(key) for key in NUMBERS], places, 12).producers
    assert [each.name for each in as_text] == [name.removesuffix(" of numbers as text")]


@pytest.mark.parametrize(("key_type", "width"), [(KeyType.INT64, 8), (KeyType.INT32, 4), (KeyType.INT16, 2)])
def test_keys_of_their_serializer_are_the_engines_own(key_type, width):
    """An IntegerSerializer's 4 bytes of an int column are no deviation; another serializer's bytes are one."""
    numbers = [number % 30_000 for number in NUMBERS]
    for sent in (8, 4, 2):
        places = [(murmur2(key.to_bytes(sent, "big")) & 0x7FFFFFFF) % 12 for key in numbers]
        audit = audited(numbers, places, 12, key_type=key_type)
        (only,) = audit.producers
        assert only.name == f"Java's murmur2 of {sent}-byte integers"
        assert (Engine.KAFKA in only.engines) == (sent == width)
        assert audit.placement.key_type is key_type
        if sent == width:
            assert not audit.placement.explicit


def test_a_number_modulo_the_partitions_is_named():
    assert [each.name for each in audited(NUMBERS, [key % 7 for key in NUMBERS], 7).producers] == [
        "the number modulo the partitions"
    ]


@pytest.mark.parametrize("seed", range(4))
def test_real_mixtures_stay_two(seed):
    """Java beside a client that keeps the sign, beside librdkafka, and beside a partitioner of one's own."""
    chance, column = np.random.default_rng(seed), pa.array(TEXTS)
    rows = chance.integers(0, len(TEXTS), 3_000)
    java = definition_of(Engine.KAFKA).placement(12, None).channels_of(column)
    others = {
        "murmur2 made positive by abs()": [CLIENTS["murmur2 made positive by abs()"](key, 12) for key in TEXTS],
        "librdkafka's CRC32": [zlib.crc32(key.encode()) % 12 for key in TEXTS],
        "a custom partitioner": chance.integers(0, 12, len(TEXTS)),
    }
    for name, places in others.items():
        partition = np.where(chance.random(len(rows)) < 0.6, java[rows], np.array(places)[rows])
        found = {each.name: each.share for each in audit_of(observed(column, rows, partition), 12, column).producers}
        assert found.keys() == {"Java's murmur2", name}
        assert found["Java's murmur2"].share == pytest.approx(0.6, abs=0.05)
