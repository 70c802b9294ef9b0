"""Worker processes of a stage: started, reached over sockets, killed and ended."""

import json
import secrets
import subprocess
import sys
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

import numpy as np

from adapt.core.errors import EnvironmentFailure
from adapt.core.stage.conditions.faults import Capacity
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.records.arrays import Records
from reality.processes.messages import Answer, Installed, Message, Order, Report, States
from reality.processes.records import DONE, KEPT
from reality.processes.wire import ANSWER, DRIVER, REPORT, ROWS, STATES, connected, note
from reality.processes.worker import TIMES

ROOT = Path(__file__).parents[2]


@dataclass(slots=True, eq=False)
class _Process:
    """A worker process; its orders go together."""

    seat: int
    popen: subprocess.Popen[bytes]
    port: int = 0
    connection: Connection | None = None
    orders: list[list[str | int]] = field(default_factory=list)


class LoopbackWorkers:
    """Worker processes on this machine; they end with the driver."""

    def __init__(self, settings: StageSettings) -> None:
        """Start all processes, and the clock.

        Raises:
            EnvironmentFailure: A process cannot be started.
        """
        self._settings = settings
        self._key = secrets.token_bytes(32)
        self._started: list[subprocess.Popen[bytes]] = []
        self._end = weakref.finalize(self, _end, self._started)
        try:
            service = self._popen("service")
            self._processes = [_Process(worker, self._popen("worker", worker)) for worker in range(settings.workers)]
            self._service = _port(service, "the loopback service")
            for one in self._processes:
                self._connect(one)
            self._start_s = monotonic()
            for one in self._processes:
                self._begin(one)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Process of each worker."""
        return [one.popen.pid for one in self._processes]

    def now_s(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._start_s

    def poll(self, until_s: float) -> list[tuple[int, Message]]:
        """Wait for messages of workers, until a time.

        Raises:
            EnvironmentFailure: A process ended by itself.
        """
        for one in self._processes:
            self._send_orders(one)
        messages: list[tuple[int, Message]] = []
        while not messages:
            sources: dict[Any, int] = {one.connection: worker for worker, one in enumerate(self._processes)}
            left_s = until_s - self.now_s()
            ready = select(list(sources), [], [], None if left_s == np.inf else max(0.0, left_s))[0]
            if not ready:
                break
            for source in ready:
                messages += self._received(sources[source], source)
        return messages

    def rows(self, worker: int, rows: Records) -> None:
        """Send rows."""
        self._send_orders(self._processes[worker])
        self._send(self._processes[worker], ROWS + rows.tobytes())

    def order(self, worker: int, order: Order, *arguments: int) -> None:
        """Send an order, read before rows that wait at the worker.

        Orders go together: with the next rows, or when the driver begins to wait.
        """
        self._processes[worker].orders.append([order.value, *map(int, arguments)])

    def close(self) -> None:
        """End all processes, and wait for them."""
        self._end()
        for one in self._processes if hasattr(self, "_processes") else ():
            if one.connection is not None and not one.connection.closed:
                one.connection.close()

    def _popen(self, name: str, *seat: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"reality.processes.{name}"]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        one = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True)
        self._started.append(one)
        assert one.stdin is not None
        one.stdin.write("".join(f"{line}\n" for line in (self._key.hex(), *seat)).encode())
        one.stdin.flush()
        return one

    def _connect(self, one: _Process) -> None:
        """Connect to a process that is starting, and wait until it is ready."""
        what = f"worker process {one.seat}"
        one.port = _port(one.popen, what)
        try:
            one.connection = connected(one.port, self._key, DRIVER, one.seat)
            one.connection.send_bytes(note(**self._given(one.seat)))
            one.connection.recv_bytes()
        except (EOFError, OSError):
            raise EnvironmentFailure(f"{what} ended while it started; free some memory, or use fewer workers") from None

    def _given(self, worker: int) -> dict[str, Any]:
        """Settings of a worker process."""
        settings = self._settings
        capacity = Capacity.of_worker(worker, settings.disturbances)
        speeds = np.diff(capacity.cpu_s) / np.diff(capacity.times_s)
        return {
            "credits": settings.network.connection_tuples,
            "state_bytes": (settings.state_sizes() * settings.costs.tuple_bytes).tolist(),
            "slow_from_s": capacity.times_s[1:].tolist(),
            "speeds": [*speeds.tolist(), capacity.rate],
            "service": self._service,
        }

    def _begin(self, one: _Process) -> None:
        """Start the clock of a process."""
        self._send(one, note(start_s=self._start_s, ports={other.seat: other.port for other in self._processes}))

    def _send_orders(self, one: _Process) -> None:
        if one.orders:
            self._send(one, note(orders=one.orders))
            one.orders = []

    def _send(self, one: _Process, frame: bytes) -> None:
        assert one.connection is not None
        try:
            one.connection.send_bytes(frame)
        except OSError:
            raise self._gone(one) from None

    def _received(self, worker: int, connection: Connection) -> list[tuple[int, Message]]:
        messages: list[tuple[int, Message]] = []
        try:
            while connection.poll(0):
                messages += self._message(worker, connection.recv_bytes())
        except (EOFError, OSError):
            raise self._gone(self._processes[worker]) from None
        return messages

    def _gone(self, one: _Process) -> EnvironmentFailure:
        code = one.popen.wait()
        return EnvironmentFailure(
            f"worker process {one.seat} ended by itself (exit {code}); free some memory, or use fewer workers"
        )

    def _message(self, worker: int, frame: bytes) -> list[tuple[int, Message]]:
        """A frame as a message."""
        if frame[:1] == REPORT:
            at_s, idle_s = TIMES.unpack_from(frame, 1)
            return [(worker, Report(at_s, idle_s, np.frombuffer(frame, DONE, offset=1 + TIMES.size)))]
        if frame[:1] == STATES:
            return [(worker, States(np.frombuffer(frame, KEPT, offset=1)))]
        said = json.loads(frame[1:])
        return [(worker, _event(kind, numbers)) for kind, *numbers in said["events"]]


def _event(kind: str, numbers: list[Any]) -> Message:
    return Answer(*numbers) if kind == ANSWER else Installed(*numbers)


def _port(process: subprocess.Popen[bytes], what: str) -> int:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise EnvironmentFailure(f"{what} ended while it started; free some memory, or use fewer workers")
    return int(line)


def _end(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """End processes and wait for them."""
    for one in processes:
        one.kill()
    for one in processes:
        one.wait()
        for pipe in (one.stdin, one.stdout):
            if pipe is not None:
                pipe.close()
