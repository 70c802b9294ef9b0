"""Loopback service that answers with the latency asked for."""

import sys
from heapq import heappop, heappush
from multiprocessing.connection import Connection
from select import select
from time import monotonic
from typing import Any

from reality.processes.wire import LATENCY, SERVICE, accepted, listening, port_of


def serve() -> None:
    """Answer until all clients are gone.

    The key comes by stdin, the port goes to stdout.
    """
    key = bytes.fromhex(sys.stdin.readline())
    with listening() as server:
        print(port_of(server), flush=True)
        clients: list[Connection] = []
        due: list[tuple[float, int, Connection]] = []
        requests = 0
        while True:
            now_s = monotonic()
            while due and due[0][0] <= now_s:
                _answer(heappop(due)[2], clients)
            sources: list[Any] = [server, *clients]
            for ready in select(sources, [], [], due[0][0] - now_s if due else None)[0]:
                if ready is server:
                    found = accepted(server, key, SERVICE)
                    clients += [found[1]] if found else []
                    continue
                try:
                    (latency_s,) = LATENCY.unpack(ready.recv_bytes())
                except (EOFError, OSError):
                    clients.remove(ready)
                    if not clients:
                        return
                    continue
                requests += 1
                heappush(due, (monotonic() + latency_s, requests, ready))


def _answer(client: Connection, clients: list[Connection]) -> None:
    if client in clients:
        try:
            client.send_bytes(b"")
        except OSError:
            clients.remove(client)


if __name__ == "__main__":
    serve()
