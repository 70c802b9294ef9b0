"""Loopback service that answers each request after the latency that it asks for.

`python -m reality.service` prints its port and serves until standard input ends. A request is a double, the latency in
seconds; the answer is a byte. One connection has one request at a time.
"""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from selectors import EVENT_READ, DefaultSelector
from struct import Struct
from subprocess import PIPE, Popen
from time import monotonic

REQUEST = Struct("<d")
ANSWER = b"\x01"


def serve() -> None:
    """Answer until standard input ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    due: list[tuple[float, int, socket.socket]] = []
    requests = 0
    with DefaultSelector() as selector:
        selector.register(listener, EVENT_READ)
        selector.register(sys.stdin, EVENT_READ)
        while True:
            while due and due[0][0] <= monotonic():
                _send(heappop(due)[2])
            for ready, _ in selector.select(max(due[0][0] - monotonic(), 0) if due else None):
                client = ready.fileobj
                if client is sys.stdin:
                    return
                assert isinstance(client, socket.socket)
                if client is listener:
                    selector.register(_accepted(listener), EVENT_READ)
                    continue
                latency_s = _asked_s(client)
                if latency_s is None:
                    selector.unregister(client)
                    client.close()
                    continue
                requests += 1
                heappush(due, (monotonic() + latency_s, requests, client))


def _accepted(listener: socket.socket) -> socket.socket:
    client, _ = listener.accept()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def _asked_s(client: socket.socket) -> float | None:
    """The latency of the next request; None at the end of a connection."""
    try:
        request = client.recv(REQUEST.size)
    except OSError:
        return None
    return float(REQUEST.unpack(request)[0]) if len(request) == REQUEST.size else None


def _send(client: socket.socket) -> None:
    try:
        client.sendall(ANSWER)
    except OSError:  # closed while it waited
        return


@contextmanager
def running() -> Iterator[int]:
    """The port of a service in a process of its own, ended after use."""
    with Popen([sys.executable, "-m", __name__], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(10)


if __name__ == "__main__":
    serve()
