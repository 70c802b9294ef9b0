"""Topics of a running broker as traces."""

import json
import struct

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.traces.store.manifest import read_manifest
from tests.kafka_broker import create_topic, send

ORDERS = 2000


@pytest.fixture(scope="session")  # the broker's: tests with and without Spark do not run in a row
def orders(broker):
    """A topic of JSON orders; a few values are not JSON."""
    create_topic(broker, "orders", 4)
    values = [json.dumps({"user": {"id": at % 50, "name": f"é{at % 7}"}, "cents": at / 4}) for at in range(ORDERS)]
    values[::200] = ["none"] * (ORDERS // 200)
    send(
        broker, "orders", ({"key": f"o{at % 97}", "value": each, "timestamp": 1 + at} for at, each in enumerate(values))
    )
    return f"kafka://{broker}/orders"


def table_of(path):
    return pa.concat_tables(pa.parquet.read_table(block) for block in sorted(path.glob("part-*")))


@pytest.mark.usefixtures("spark")
def test_a_topic_becomes_a_trace_with_its_partitions(adapt, orders, tmp_path):
    said = adapt.done("ingest", orders, "-o", tmp_path / "o.trace")
    assert "guessed: key format text, time from ts" in said.err
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".topic")] == []
    rows = table_of(tmp_path / "o.trace")
    assert rows["ts"].cast(pa.int64()).to_pylist() == [1000 * (1 + at) for at in range(ORDERS)]
    placed = definition_of(Engine.LIBRDKAFKA).placement(4, None).channels_of(rows["key"].combine_chunks())
    assert rows["partition"].to_numpy().tolist() == placed.tolist()
    once = read_manifest(tmp_path / "o.trace")
    assert [each["name"].partition(", ")[0] for each in once.made.inputs] == [orders] * 4
    adapt.done("ingest", orders, "-o", tmp_path / "o.trace", "--force")
    assert read_manifest(tmp_path / "o.trace").content_hash == once.content_hash


@pytest.mark.usefixtures("spark")
def test_a_field_of_json_is_the_key_and_other_values_are_rejected(adapt, orders, tmp_path):
    out = tmp_path / "u.trace"
    more = ("--cost", "payload.cents", "--cost-unit", "ms", "--bytes", "payload_size", "--keep", "offset")
    adapt.done("ingest", orders, "--key", "payload.user.id", *more, "-o", out)
    assert read_manifest(out).summary["rejects"]["reasons"] == {"payload is not a JSON object": ORDERS // 200}
    rows = table_of(out)
    assert len(rows) == ORDERS - ORDERS // 200
    assert "partition" not in rows.column_names  # that of another key
    assert set(rows["key"].to_pylist()) == {str(at) for at in range(50)}
    error = adapt.refused(2, "ingest", orders, "--key", "payload.user.idd", "-o", tmp_path / "none.trace")
    assert (
        error == "adapt: payload has no field 'user.idd'; did you mean 'user.id'? Available: cents, user.id, user.name"
    )
    error = adapt.refused(3, "ingest", orders, "--key", "payload.cents", "--max-rejects", 3, "-o", tmp_path / "n.trace")
    assert "payload is not a JSON object (10)" in error
    assert not (tmp_path / "n.trace").exists()


@pytest.mark.usefixtures("spark")
def test_keys_in_confluents_wire_format_are_kept_as_they_were_sent(adapt, broker, tmp_path):
    create_topic(broker, "avro", 3)
    keys = [b"\0" + struct.pack(">I", 7 + (at % 4 == 0)) + f"\x02{at % 30}".encode() for at in range(200)]
    send(broker, "avro", ({"key": key, "value": b""} for key in keys))
    said = adapt.done("ingest", f"kafka://{broker}/avro", "--keep", "schema_id", "-o", tmp_path / "a.trace")
    assert "schemas of the keys: 7 (75 %), 8 (25 %)" in said.err
    assert "guessed: key format confluent" in said.err
    rows = table_of(tmp_path / "a.trace")
    assert sorted(rows["key"].to_pylist()) == sorted(keys)
    assert np.bincount(rows["schema_id"].to_numpy()).tolist()[7:] == [150, 50]


@pytest.mark.usefixtures("spark")
def test_a_sample_says_what_it_costs_and_secrets_are_kept_nowhere(adapt, orders, tmp_path):
    secret = tmp_path / "client.properties"
    secret.write_text("sasl.username=ann-the-user\nsasl.password=hunter2\n")
    out = tmp_path / "s.trace"
    said = adapt.done("ingest", orders, "--sample", "30%", "--client-config", secret, "-o", out, "-v")
    assert "record-sample: The trace holds a sample of 30 % of the records of its topic:" in said.err
    judged = adapt.done("verdict", out, "--engine", "kafka", "--channels", 4)
    assert "rows alone, the imbalance is " in " ".join(judged.out.split())
    assert "(95 % confidence)" in " ".join(judged.out.split())
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != secret]
    shown = (said.out + said.err + judged.out + judged.err).encode()
    assert not any(word in text for text in (*kept, shown) for word in (b"hunter2", b"ann-the-user"))


def test_after_an_interrupt_the_records_so_far_are_named(adapt, orders, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("adapt.traces.ingest.ingest.grouped", interrupt)
    error = adapt.refused(130, "ingest", orders, "-o", tmp_path / "i.trace")
    kept = tmp_path / ".i.trace.topic"
    assert error == f"adapt: interrupted; {kept} has the records so far, and the same command goes on from there"
    assert list(tmp_path.iterdir()) == [kept]
