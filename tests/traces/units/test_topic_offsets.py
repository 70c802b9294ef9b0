"""End offsets of a topic over time, asked of a broker without reading a record."""

from examples.broker import free_port
from tests.kafka_broker import Proxy, create_topic, running, send

FETCH = 1
LIST_OFFSETS = 2


def test_the_hot_partition_of_a_topic_is_found_without_reading_records(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proxy = Proxy(free_port(), port=free_port())
    with running(proxy.behind, advertised=proxy.port), proxy.running():
        address = f"127.0.0.1:{proxy.port}"
        create_topic(address, "orders", 6)
        for _ in range(40):  # as many batches, whose times are those of the broker
            send(address, "orders", [{"value": b"x", "partition": at} for at in [2] * 10 + list(range(6)) * 2])
        proxy.requests.clear()
        line = f"verdict kafka://{address}/orders --count offsets --channels 3"
        found = adapt.json(*line.split())
    assert LIST_OFFSETS in proxy.requests
    assert FETCH not in proxy.requests
    assert found["units"] == list("012345")
    assert found["answer"]["busiest"]["unit"] == "2"
    assert abs(found["shares"][2] - 12 / 22) < 0.02  # this broker lists the begin of the last batch as the end
