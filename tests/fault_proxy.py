"""A proxy in front of a store, which counts requests and makes some fail."""

import asyncio
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from socket import SO_LINGER, SOL_SOCKET
from typing import TypeAlias

SLOW_S = 0.2

BUSY = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"""


class Fault(StrEnum):
    """What goes wrong with a request."""

    BUSY = "503"
    RESET = "the connection is reset before the answer"
    LOST = "the connection is reset after the store has done what was asked"
    CUT = "the answer ends in the middle"
    SLOW = "the answer is late"


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its method, its path with the query, and its header fields in lower case."""

    method: str
    path: str
    fields: dict[str, str]

    @property
    def reads(self) -> bool:
        """Whether it reads bytes of an object."""
        return self.method == "GET" and "?" not in self.path


Failing: TypeAlias = Callable[[Request], Fault | None]


@dataclass(slots=True)
class Proxy:
    """A running proxy.

    Attributes:
        upstream: Port of the store.
        failing: The fault of each request; may change at any time.
        port: Its own port.
        requests: All requests so far.
        faults: Those that failed, and how.
    """

    upstream: int
    failing: Failing = lambda _: None
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    faults: list[tuple[Request, Fault]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                request = _request(head)
                self.requests.append(request)
                if request.fields.get("expect"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await _body(reader, request)
                fault = self.failing(request)
                if fault is not None:
                    self.faults.append((request, fault))
                if not await self._answer(head, body, request, fault, writer):
                    break
        writer.close()

    async def _answer(
        self, head: bytes, body: bytes, request: Request, fault: Fault | None, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; whether the connection stays open."""
        if fault is Fault.BUSY:
            writer.write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: %d\r\n\r\n" % len(BUSY))
            writer.write(b"" if request.method == "HEAD" else BUSY)
            await writer.drain()
            return True
        if fault is Fault.RESET:
            return _reset(writer)
        answer = await self._asked(head, body)
        if fault is Fault.LOST:
            return _reset(writer)
        if fault is Fault.SLOW:
            await asyncio.sleep(SLOW_S)
        ends = answer.index(b"\r\n\r\n") + 4
        cut = fault is Fault.CUT
        writer.write(answer[: ends + (len(answer) - ends) // 2] if cut else answer)
        await writer.drain()
        return not cut

    async def _asked(self, head: bytes, body: bytes) -> bytes:
        """The store's answer; it closes each connection, so that its end is the end of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"expect:"))]
        writer.write(b"\r\n".join([lines[0], b"Connection: close", *lines[1:]]) + body)
        answer = await reader.read()
        writer.close()
        return answer.replace(b"Connection: close\r\n", b"", 1)


async def _body(reader: asyncio.StreamReader, request: Request) -> bytes:
    """The bytes after the head, in chunks if they came so."""
    if request.fields.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(request.fields.get("content-length", 0)))
    read = b""
    size = 1
    while size:
        line = await reader.readline()
        size = int(line.split(b";")[0], 16)
        read += line + await reader.readexactly(size + 2)
    return read


def _request(head: bytes) -> Request:
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    return Request(
        method, path, {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    )


def _reset(writer: asyncio.StreamWriter) -> bool:
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False


@contextmanager
def running(upstream: int, failing: Failing = lambda _: None) -> Iterator[Proxy]:
    """A proxy in front of a store, in a thread of this process, which ends with the block."""
    proxy, loop, listens = Proxy(upstream, failing), asyncio.new_event_loop(), threading.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 20))
        proxy.port = server.sockets[0].getsockname()[1]
        listens.set()
        loop.run_forever()
        server.close()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    listens.wait()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def seeded(seed: int, share: float, kinds: tuple[Fault, ...] = tuple(Fault)) -> Failing:
    """Faults by chance: a share of all requests fails."""
    chance = Random(seed)
    return lambda _: chance.choice(kinds) if chance.random() < share else None


def first(count: int, fault: Fault, chosen: Callable[[Request], bool] = lambda _: True) -> Failing:
    """The first few of the chosen requests fail."""
    left = iter(range(count))
    return lambda request: fault if chosen(request) and next(left, None) is not None else None
