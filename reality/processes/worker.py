"""A worker process: a consumer and the state of its partitions."""

import json
import sys
from bisect import bisect
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from select import select
from socket import socket
from struct import Struct
from threading import Thread
from time import monotonic
from typing import Any

import numpy as np

from reality.processes.messages import Order
from reality.processes.partition import Partition, unpacked
from reality.processes.records import DONE, SENT
from reality.processes.wire import (
    ANSWER,
    DRIVER,
    INSTALLED,
    LATENCY,
    REPORT,
    ROWS,
    SERVICE,
    STATE,
    STATES,
    accepted,
    connected,
    listening,
    note,
    port_of,
)

TIMES = Struct("<dd")
"""Head of a report: its time, and idle seconds until then."""

LOOK_S = 200e-6
"""Longest time between two looks at the sockets, but for the row at hand."""

REPORT_S = 1e-3
"""Longest time that a processed row waits for its report, but for the row at hand."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a worker process.

    Attributes:
        seat: Its number.
        credits: Rows that a connection holds.
        state_bytes: Stated state of each partition.
        slow_from_s: Times at which its speed changes, ascending.
        speeds: Its speed before the first of these, and after each.
        service: Port of the loopback service.
    """

    seat: int
    credits: int
    state_bytes: list[int]
    slow_from_s: list[float]
    speeds: list[float]
    service: int


class Worker:
    """Processes rows until the driver is gone."""

    def __init__(self, settings: Settings, key: bytes, server: socket, driver: Connection) -> None:
        """Connect to the service for which rows wait."""
        self._settings, self._key, self._server, self._driver = settings, key, server, driver
        self._service = connected(settings.service, key, settings.seat, SERVICE)
        self._ports: dict[int, int] = {}
        self._start_s = 0.0
        self._sources: dict[Connection, int] = {}
        self._extracted: dict[int, list[bytes]] = {}
        self._states: dict[int, SimpleQueue[list[bytes]]] = {}
        self._rows: deque[tuple[Any, ...]] = deque()
        self._partitions: dict[int, Partition] = {}
        self._done: list[tuple[Any, ...]] = []
        self._events: list[list[Any]] = []
        self._idle_s = 0.0

    def serve(self, start_s: float, ports: dict[int, int]) -> None:
        """Process rows.

        Args:
            start_s: Start of the run, by the clock of the machine.
            ports: Port of each worker, by seat.

        Raises:
            EOFError: The driver is gone.
        """
        self._start_s, self._ports = start_s, ports
        looked_s = reported_s = self._now_s()
        while True:
            if not self._rows:
                self._report()
                self._send_events()
                began_s = self._now_s()
                ready = select(self._all(), [], [])[0]
                looked_s = reported_s = self._now_s()
                self._idle_s += looked_s - began_s
                self._read(ready)
                continue
            done_s = self._process()
            if done_s - reported_s > REPORT_S or 2 * len(self._done) >= self._settings.credits:
                self._report()
                reported_s = done_s
            if done_s - looked_s > LOOK_S:
                self._read(select(self._all(), [], [], 0)[0])
                looked_s = done_s

    def _process(self) -> float:
        """Wait for the service for the cost of the next row; returns when it is done."""
        partition, group, producer, number, cost_s = self._rows.popleft()
        taken_s = self._now_s()
        speed = self._settings.speeds[bisect(self._settings.slow_from_s, taken_s)]
        self._service.send_bytes(LATENCY.pack(cost_s / speed))
        self._service.recv_bytes()
        self._partition(partition).add(group, number)
        done_s = self._now_s()
        self._done.append((partition, producer, group, number, taken_s, done_s))
        return done_s

    def _report(self) -> None:
        """Report processed rows."""
        if self._done:
            frame = REPORT + TIMES.pack(self._now_s(), self._idle_s) + np.array(self._done, DONE).tobytes()
            self._done.clear()
            self._driver.send_bytes(frame)

    def _read(self, ready: list[Any]) -> None:
        """Read what has come."""
        for one in ready:
            if one is self._server:
                self._accept()
            elif one is self._driver:
                while one.poll(0):
                    self._follow(one.recv_bytes())
            else:
                try:
                    while one.poll(0):
                        self._take(one.recv_bytes(), one)
                except (EOFError, OSError):
                    del self._sources[one]
                    one.close()
        self._send_events()

    def _all(self) -> list[Any]:
        """All sockets that are read."""
        return [self._driver, self._server, *self._sources]

    def _accept(self) -> None:
        found = accepted(self._server, self._key, self._settings.seat)
        if found is not None:
            self._sources[found[1]] = found[0]

    def _take(self, frame: bytes, sender: Connection) -> None:
        """Take the state of a partition from another worker."""
        fixed = sender.recv_bytes()
        received_s = self._now_s()
        partition, times_s, state = unpacked(frame[1:], fixed)
        self._partitions[partition] = state
        size = len(frame) - 1 + len(fixed)
        self._events.append([INSTALLED, partition, size, *times_s, received_s, self._now_s()])

    def _follow(self, frame: bytes) -> None:
        """Take rows or an order from the driver."""
        if frame[:1] == ROWS:
            self._rows.extend(np.frombuffer(frame[1:], SENT).tolist())
            return
        said = json.loads(frame[1:])
        for name, *arguments in said["orders"]:
            self._obey(name, arguments)
        for seat, frames in self._extracted.items():
            self._give(seat, frames)
        self._extracted.clear()

    def _obey(self, name: str, arguments: list[int]) -> None:
        match name:
            case Order.ASK:
                self._answer(arguments[0])
            case Order.GIVE:
                self._extract(*arguments)
            case Order.STATES:
                self._send_events()
                self._report()
                held = [state.records(partition) for partition, state in self._partitions.items() if state.keys]
                self._driver.send_bytes(STATES + b"".join(one.tobytes() for one in held))

    def _answer(self, question: int) -> None:
        self._events.append([ANSWER, question, self._now_s(), self._idle_s])

    def _send_events(self) -> None:
        """Send events, after the rows that came before them."""
        if self._events:
            self._report()
            self._driver.send_bytes(note(events=self._events))
            self._events.clear()

    def _extract(self, partition: int, seat: int) -> None:
        """Extract the state of a partition, to be sent."""
        keys, fixed = self._partition(partition).packed(partition, self._now_s)
        del self._partitions[partition]
        self._extracted.setdefault(seat, []).extend((STATE + keys, fixed))

    def _give(self, seat: int, frames: list[bytes]) -> None:
        """Send states after earlier ones, in a thread: two workers can send to each other at once."""
        if seat not in self._states:
            self._states[seat] = SimpleQueue()
            Thread(target=self._send_states, args=(seat, self._states[seat]), daemon=True).start()
        self._states[seat].put(frames)

    def _send_states(self, seat: int, states: "SimpleQueue[list[bytes]]") -> None:
        with connected(self._ports[seat], self._key, self._settings.seat, seat) as target:
            while True:
                for frame in states.get():
                    target.send_bytes(frame)

    def _partition(self, partition: int) -> Partition:
        """The state of a partition, empty at first."""
        state = self._partitions.get(partition)
        if state is None:
            state = self._partitions[partition] = Partition(bytes(self._settings.state_bytes[partition]))
        return state

    def _now_s(self) -> float:
        return monotonic() - self._start_s


def main() -> None:
    """Run a worker until its driver is gone.

    The key and the seat come by stdin, the port goes to stdout.
    """
    key, seat = bytes.fromhex(sys.stdin.readline()), int(sys.stdin.readline())
    with listening() as server:
        print(port_of(server), flush=True)
        found = None
        while found is None or found[0] != DRIVER:
            found = accepted(server, key, seat)
        driver = found[1]
        try:
            worker = Worker(Settings(seat=seat, **json.loads(driver.recv_bytes()[1:])), key, server, driver)
            driver.send_bytes(note(ready=True))
            begin = json.loads(driver.recv_bytes()[1:])
            worker.serve(begin["start_s"], {int(one): port for one, port in begin["ports"].items()})
        except (EOFError, OSError):  # the driver has ended
            return


if __name__ == "__main__":
    main()
