"""The JVM parts: tables from text, a file or the class path; Kafka's Java producer follows one."""

import os
import re
import subprocess
from pathlib import Path

import confluent_kafka
import pyspark
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType
from tests.core.engines.rekey.references import CHANNELS_OF, plan_of
from tests.jvm.jar import ROOT, built, run
from tests.kafka_broker import create_topic

HERE = Path(__file__).parent
CHANNELS = 8


@pytest.fixture(scope="module")
def jar(tmp_path_factory):
    """The jar of the JVM parts."""
    return built(tmp_path_factory.mktemp("jvm"))


def text_of(key):
    return key.hex() if isinstance(key, bytes) else str(key)


OTHERS = {KeyType.STRING: "other ключ", KeyType.INT64: -77, KeyType.BINARY: b"\xaa\x00"}


def test_every_key_type_is_replaced_and_taken_back_from_a_string_a_file_and_the_class_path(jar, tmp_path):
    subprocess.run(["javac", "-cp", jar, "-d", tmp_path, HERE / "Replace.java"], check=True)
    for key_type, other in OTHERS.items():
        table = rekey_table(plan_of(Engine.KAFKA, key_type, CHANNELS, 40, 3))
        file = tmp_path / f"{key_type.value}.json"
        file.write_bytes(table.to_json())
        where = {KeyType.STRING: f"classpath:{file.name}", KeyType.INT64: file}.get(key_type, table.to_json().decode())
        known = table.as_mapping()
        typed = [*known, other]
        assert run(
            tmp_path,
            [jar, tmp_path],
            "-Dfile.encoding=UTF-8",
            "Replace",
            where,
            text="\n".join(map(text_of, typed)) + "\n",
        ) == ["\t".join(map(text_of, (*(known.get(key, (key,)) * 2)[:2], key))) for key in typed]


def test_a_table_that_cannot_be_read_is_named(jar, tmp_path):
    subprocess.run(["javac", "-cp", jar, "-d", tmp_path, HERE / "Replace.java"], check=True)
    for where, said in (
        ("gone.json", "no rekey table in gone.json"),
        ("classpath:gone.json", "no rekey table in classpath:gone.json: the class path has no gone.json"),
        ('{"schema": "adapt.rekey/2"}', "field 'schema' must be adapt.rekey/1 (got adapt.rekey/2)"),
        ('{"schema": ', "no JSON at character 12"),
    ):
        command = ["java", "-cp", f"{jar}{os.pathsep}{tmp_path}", "Replace", where]
        failed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert failed.returncode != 0
        assert said in failed.stderr


def test_the_script_says_what_it_leaves_out(tmp_path):
    without = {name: text for name, text in os.environ.items() if name not in ("ADAPT_KAFKA_JAR", "ADAPT_FLINK_JAR")}
    empty = tmp_path / "bin"
    empty.mkdir()
    for tool in ("bash", "dirname", "realpath", "env"):
        (empty / tool).symlink_to(next(p for p in (Path("/bin") / tool, Path("/usr/bin") / tool) if p.exists()))
    said = subprocess.run(
        [ROOT / "jvm" / "build.sh", tmp_path / "none.jar"],
        env=without | {"PATH": str(empty)},
        capture_output=True,
        text=True,
    )
    assert (said.returncode, said.stderr) == (4, "no javac on PATH: the JVM parts need a JDK, 17 or later\n")


def test_the_producer_sends_each_record_where_its_replacement_goes_and_keeps_its_key(broker, tmp_path):
    kafka = os.environ.get("ADAPT_KAFKA_JAR")
    if kafka is None:
        pytest.skip("Java's client is not there; set ADAPT_KAFKA_JAR to kafka-clients.jar")
    jar = built(tmp_path)
    keys = [f"user-{number}" for number in range(600)]
    splits = {"user-0": (6, 1, 3)}
    pins = {f"user-{number}": number % CHANNELS for number in range(1, 60)}
    plan = Plan(Scheme.HYBRID, CHANNELS, KeyType.STRING, base=Engine.KAFKA, explicit=pins, splits=splits)
    (tmp_path / "rekey.json").write_bytes(rekey_table(plan).to_json())
    create_topic(broker, "by-replacement", CHANNELS)
    sent = ["user-0"] * 30 + keys
    (tmp_path / "keys.txt").write_text("".join(f"{key.encode().hex()}\n" for key in sent))
    logging = sorted((Path(pyspark.__path__[0]) / "jars").glob("slf4j-api-*.jar"))[0]
    source = HERE.parent / "core" / "engines" / "Produce.java"

    def produce(topic, table):
        settings = ("partitioner.class=adapt.kafka.RekeyPartitioner", f"adapt.rekey={table}")
        run(tmp_path, [kafka, logging, jar], source, broker, topic, "keys.txt", *settings)

    produce("by-replacement", "rekey.json")
    create_topic(broker, "too-few", CHANNELS - 1)
    for topic, table, error in (
        ("too-few", "rekey.json", "topic too-few has 7 partitions; the table is for 8"),
        ("by-replacement", "gone.json", "no rekey table in gone.json"),
        ("by-replacement", '{"schema": "adapt.rekey/1", "engine": "flink", "channels": 8, "keys": {}}', "(got flink)"),
    ):
        with pytest.raises(AssertionError, match=re.escape(error)):
            produce(topic, table)
    reader = confluent_kafka.Consumer({"bootstrap.servers": broker, "group.id": "none", "enable.auto.commit": False})
    reader.assign([confluent_kafka.TopicPartition("by-replacement", number, 0) for number in range(CHANNELS)])
    found = {}
    while len(found) < len(sent):
        records = reader.consume(5000, 30)
        assert records, f"{len(found)} records of {len(sent)} arrived"
        found |= {int(record.value()): (record.key().decode(), record.partition()) for record in records}
    reader.close()
    assert [found[row][0] for row in range(len(sent))] == sent
    natural = CHANNELS_OF[Engine.KAFKA]
    for key, partition in found.values():
        if key != "user-0":
            assert partition == pins.get(key, natural(key, CHANNELS, None)), key
    turns = [partition for key, partition in found.values() if key == "user-0"]
    assert {turns.count(each) for each in splits["user-0"]} <= {10, 11}
    assert set(turns) == set(splits["user-0"])
