"""The loopback service, and Spark's source of a trace."""

import socket
from pathlib import Path

from pyspark.sql.streaming.datasource import ReadAllAvailable

from reality import service
from reality.engines.spark_source import WARMING, TraceReader


def test_each_request_has_its_answer_and_shorter_ones_come_first() -> None:
    with service.running() as port:
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        for client, latency_s in zip(clients, (60.0, 0.0), strict=True):
            client.sendall(service.REQUEST.pack(latency_s))
        assert clients[1].recv(1) == service.ANSWER
        clients[0].setblocking(False)
        try:
            clients[0].recv(1)
            raise AssertionError("the long request was answered first")
        except BlockingIOError:
            pass
        for client in clients:
            client.close()


def rows(path: Path) -> TraceReader:
    """A source of five rows at once, in micro-batches of two."""
    path.write_text("".join(f"{at}\t0.004\t{at % 2}\tkey {at % 3}\n" for at in range(5)))
    return TraceReader({"path": str(path), "speedup": "0", "most": "2"})


def test_a_first_batch_warms_up_and_then_each_row_comes_once(tmp_path: Path) -> None:
    reader = rows(tmp_path / "rows.tsv")
    offset, batches = reader.initialOffset(), []
    while offset["row"] < 5:
        end = reader.latestOffset(offset, ReadAllAvailable())
        batches.append([row for part in reader.partitions(offset, end) for row in reader.read(part)])
        offset = end
    assert {row[0] for row in batches[0]} == {WARMING}
    assert {row[1] for row in batches[0]} == {"key 0", "key 1", "key 2"}
    assert [[row[0] for row in batch] for batch in batches[1:]] == [[0, 1], [2, 3], [4]]
    assert reader.latestOffset(offset, ReadAllAvailable()) == {"row": 5}
