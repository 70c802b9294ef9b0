"""Topics of a running broker, and properties of its client."""

import shutil
import ssl
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest
from confluent_kafka.admin import AdminClient

from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.traces.sources.live import cluster, reading
from adapt.traces.sources.live.address import TopicAddress, TopicOptions, topic_of
from adapt.traces.sources.live.cluster import ClientConfig
from adapt.traces.sources.live.reading import RecordSample
from adapt.traces.sources.live.topic import read_topic
from adapt.traces.spark.progress import silent
from examples.broker import free_port
from tests.kafka_broker import Proxy, create_topic, running, send

RECORDS = 3000
BETWEEN: list[str] = []


@pytest.fixture(scope="module")
def clicks(broker):
    """A topic of three spans of records in several batches each, with a time between two of them."""
    create_topic(broker, "clicks", 3)
    for span in range(3):
        for numbers in np.array_split(np.arange(span * RECORDS // 3, (span + 1) * RECORDS // 3), 4):
            send(broker, "clicks", ({"key": f"u{at % 97}", "value": b"x" * 20} for at in numbers))
        BETWEEN.append(datetime.now(UTC).isoformat())
        after = time.time() + 0.005
        while time.time() < after:  # brokers know milliseconds
            pass
    return TopicAddress(broker, "clicks")


def read(address, folder, options=None, expressions=("key",), progress=silent):
    return read_topic(address, options or TopicOptions(), expressions, folder / ".t.topic", "UTC", progress)


def rows(topic):
    wanted = ["partition", "offset", "ts", "key"]
    blocks = [block for at, file in enumerate(topic.files) for block in topic.form.cut(at, file)]
    return [row for block in blocks for batch in topic.form.read(block, wanted) for row in batch.to_pylist()]


def places(topic):
    return [(row["partition"], row["offset"]) for row in rows(topic)]


def test_every_record_is_read_once_and_no_group_is_made(broker, clicks, tmp_path):
    stages = []
    topic = read(clicks, tmp_path, progress=lambda *stage: stages.append(stage))
    assert len(set(places(topic))) == len(places(topic)) == RECORDS
    assert stages[-1] == ("reading the topic", RECORDS, RECORDS)
    assert [file.label for file in topic.files] == ["clicks/0", "clicks/1", "clicks/2"]
    assert topic.guesses == ("key format text",)
    assert topic.notes == []
    groups = AdminClient({"bootstrap.servers": broker}).list_consumer_groups().result(10)
    assert groups.valid == []


def test_a_span_of_time_is_read(clicks, tmp_path):
    found = rows(read(clicks, tmp_path, TopicOptions(begin=BETWEEN[0], end=BETWEEN[1])))
    assert 0 < len(found) <= RECORDS // 3  # Tansu finds the batch of a time, sometimes one too early
    begin, end = map(datetime.fromisoformat, BETWEEN[:2])
    assert all(begin.timestamp() - 0.001 < row["ts"].timestamp() < end.timestamp() for row in found)


def test_at_most_so_many_records_are_shared_out_over_partitions(clicks, tmp_path):
    found = rows(read(clicks, tmp_path, TopicOptions(max_records=100)))
    assert len(found) == 100
    assert {row["partition"] for row in found} == {0, 1, 2}


def test_a_small_sample_leaves_most_of_the_topic_unsent(tmp_path):
    proxy = Proxy(free_port(), port=free_port())
    with running(proxy.behind, advertised=proxy.port) as broker:
        create_topic_behind(proxy, broker.address, 30)
        with proxy.running():
            address, share = TopicAddress(f"127.0.0.1:{proxy.port}", "t"), Fraction(1, 50)
            small = places(read(address, tmp_path, TopicOptions(share=share)))
            (tmp_path / "whole").mkdir()
            came = proxy.passed
            whole = places(read(address, tmp_path / "whole"))
    partitions, offsets = np.array(whole).T
    ends = dict(enumerate(np.bincount(partitions).tolist()))
    taken = RecordSample(share, dict.fromkeys(ends, 0), ends).takes(partitions, offsets)
    assert small == [place for place, is_taken in zip(whole, taken.tolist(), strict=True) if is_taken]
    assert abs(len(small) - 600) <= len(ends)
    assert came < 0.3 * (proxy.passed - came)


def test_a_run_goes_on_where_the_brokers_went_away(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "DOWN_S", 0.5)
    proxy = Proxy(free_port(), port=free_port())
    with running(proxy.behind, advertised=proxy.port) as broker:
        create_topic_behind(proxy, broker.address)
        address = TopicAddress(f"127.0.0.1:{proxy.port}", "t")
        small = tmp_path / "client.properties"
        small.write_text("max.partition.fetch.bytes=20000\n")
        cut = Proxy(proxy.behind, port=proxy.port, most_bytes=1_000_000)
        with cut.running(), pytest.raises(EnvironmentFailure, match=r"of up to 20,000 are kept, and the same command"):
            read(address, tmp_path, TopicOptions(client_config=small))
        with proxy.running():
            topic = read(address, tmp_path)
        assert topic.notes[0].startswith("goes on from the ")
        assert not topic.notes[0].startswith("goes on from the 0 ")
        assert len(set(places(topic))) == len(places(topic)) == 20_000


def create_topic_behind(proxy, address, batches=20):
    with proxy.running():
        create_topic(address, "t", 4)
        for _ in range(batches):
            send(address, "t", ({"key": str(number), "value": b"x" * 100} for number in range(1000)))


def test_an_unknown_topic_gets_the_nearest_name(clicks, tmp_path):
    with pytest.raises(BadInput, match=r"has no topic 'click'; did you mean 'clicks'\?"):
        read(replace(clicks, topic="click"), tmp_path)


def test_an_unknown_host_is_named(tmp_path):
    with pytest.raises(EnvironmentFailure, match="there is no such host"):
        read(TopicAddress("no.such.host.invalid:9092", "t"), tmp_path)


def test_a_port_that_nothing_listens_on_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.0)
    with pytest.raises(EnvironmentFailure, match=r"no broker answers at .* \(.*Connection refused\)"):
        read(TopicAddress(f"127.0.0.1:{free_port()}", "t"), tmp_path)


def test_refused_authentication_shows_no_secret(clicks, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=ann\nsasl.password=hunter2\n"
    )
    with pytest.raises(EnvironmentFailure, match="authentication was refused; check the properties") as raised:
        read(clicks, tmp_path, TopicOptions(client_config=file))
    assert "hunter2" not in str(raised.value)
    assert "ann" not in str(raised.value)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not there; it makes a certificate")
def test_a_topic_is_read_by_tls(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    line = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*line.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    plain = Proxy(free_port(), port=free_port())
    with running(plain.behind, advertised=plain.port) as broker:
        create_topic_behind(plain, broker.address, 1)
        trusted, unknown = tmp_path / "trusted.properties", tmp_path / "unknown.properties"
        trusted.write_text(f"security.protocol=SSL\nssl.ca.location={certificate}\n")
        unknown.write_text("security.protocol=SSL\n")
        address = TopicAddress(f"127.0.0.1:{plain.port}", "t")
        with Proxy(plain.behind, port=plain.port, context=context).running():
            with pytest.raises(EnvironmentFailure, match=r"no TLS connection .* \(.*certificate verify failed"):
                read(address, tmp_path, TopicOptions(client_config=unknown))
            assert len(rows(read(address, tmp_path, TopicOptions(client_config=trusted)))) == 1000


def test_a_wrong_property_is_named(clicks, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("sasl.pasword=hunter2\n")
    with pytest.raises(
        UsageError, match=r'client\.properties: No such configuration property: "sasl\.pasword"'
    ) as raised:
        read(clicks, tmp_path, TopicOptions(client_config=file))
    assert "hunter2" not in str(raised.value)


def test_records_sent_while_it_reads_are_left_out(broker, tmp_path):
    create_topic(broker, "growing", 2)
    send(broker, "growing", ({"key": str(number)} for number in range(1000)))
    over = threading.Event()

    def grow():
        while not over.is_set():
            send(broker, "growing", ({"key": "late"} for _ in range(100)))
            time.sleep(0.01)

    sender = threading.Thread(target=grow)
    started = threading.Event()

    def at_start(what, done, total):
        if not started.is_set():
            started.set()
            sender.start()

    found = rows(read(TopicAddress(broker, "growing"), tmp_path, progress=at_start))
    over.set()
    sender.join()
    assert len(found) == 1000


def test_tombstones_and_records_without_a_key_are_read(broker, tmp_path):
    create_topic(broker, "tombstones", 1)
    send(broker, "tombstones", [{"key": None, "value": b""}, {"key": b"k", "value": None}, {"key": b"", "value": b"v"}])
    topic = read(TopicAddress(broker, "tombstones"), tmp_path, expressions=("key", "payload"))
    block = topic.form.cut(0, topic.files[0])[0]
    found = [row for batch in topic.form.read(block, ["key", "payload", "payload_size"]) for row in batch.to_pylist()]
    assert [(row["key"], row["payload"], row["payload_size"]) for row in found] == [
        (None, "", 0),
        ("k", None, 0),
        ("", "v", 1),
    ]


def test_a_missing_client_says_how_to_get_it(clicks, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(EnvironmentFailure, match=r"pip install 'adapt-streams\[kafka\]'"):
        read(clicks, tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("kafka://host/t", r"must be given as kafka://HOST:PORT/TOPIC \(got 'kafka://host/t'\)"),
        ("kafka://ann:hunter2@host:9092/t", "a user or password is not allowed in kafka://HOST:PORT/TOPIC"),
        ("kafka://host:9092/", "must end in the name of one topic"),
        ("kafka://host:9092/a/b", "must end in the name of one topic"),
    ],
)
def test_a_wrong_address_is_refused(source, message):
    with pytest.raises(UsageError, match=message) as raised:
        topic_of([source])
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"share": Fraction(0)}, "--sample must be above 0% and at most 100%"),
        ({"max_records": 0}, "--max-records must be at least 1"),
        ({"begin": "yesterday"}, "--since must be a time such as .* or a duration before now such as 6h"),
        ({"begin": "2024-01-02", "end": "2024-01-01"}, "--until must be after --since"),
    ],
)
def test_wrong_options_are_refused(given, message):
    with pytest.raises(UsageError, match=message):
        TopicOptions(**{name: value for name, value in given.items() if name != "zone"}).span_ms(
            given.get("zone", "UTC")
        )


JAAS = r"""
# as Kafka's own tools take it
security.protocol = SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
    username="ann" password="hunter\"2";
ssl.truststore.location=/etc/ca.pem
group.id=theirs
enable.auto.commit=true
"""


def config_of(tmp_path, text):
    file = tmp_path / "client.properties"
    file.write_text(text)
    return ClientConfig.read(file)


def test_properties_of_the_java_client_are_understood(tmp_path):
    settings = config_of(tmp_path, JAAS).for_readers("h:1")
    assert settings["sasl.username"] == "ann"
    assert settings["sasl.password"] == 'hunter"2'
    assert settings["ssl.ca.location"] == "/etc/ca.pem"
    assert "sasl.jaas.config" not in settings


def test_no_property_makes_a_reader_commit_or_join_a_group(tmp_path):
    settings = config_of(tmp_path, JAAS).for_readers("h:1")
    assert (settings["group.id"], settings["enable.auto.commit"], settings["bootstrap.servers"]) == (
        "adapt",
        False,
        "h:1",
    )


def test_values_are_shown_nowhere(tmp_path):
    config = config_of(tmp_path, JAAS)
    assert "hunter" not in repr(config)
    assert config.hidden('login of ann with hunter"2 failed') == "login of ... with ... failed"


def test_a_line_that_is_no_property_is_named_by_its_number_alone(tmp_path):
    with pytest.raises(UsageError, match=r"client\.properties: line 2 is not NAME=VALUE") as raised:
        config_of(tmp_path, "a=b\nhunter2\n")
    assert "hunter2" not in str(raised.value)


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        ClientConfig.read(tmp_path / "none")


@pytest.mark.usefixtures("spark")
def test_a_verdict_takes_a_topic_in_one_step(adapt, broker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    create_topic(broker, "asked", 4)
    keys = np.random.default_rng(3).zipf(1.5, RECORDS).tolist()
    send(broker, "asked", ({"key": f"u{key}"} for key in keys))
    ask = ("verdict", f"kafka://{broker}/asked", "--channels", "4")
    found = adapt.json(*ask)
    assert (found["trace"], found["audit"]["records"]) == ("asked.trace", RECORDS)
    again = adapt(*ask)
    assert (again.code, again.err.splitlines()[-1]) == (
        4,
        "adapt: asked.trace exists, and a topic has new records; give the trace, or use --force or -o",
    )
