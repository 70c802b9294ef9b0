"""Writers in processes of their own that stop before each call which changes names, locks or syncs."""

import fcntl
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.trust.crashes.recorded import calls_patched

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        *("pandas", "pytest", "adapt.cli.main", "adapt.functions", "tests.trust.crashes.test_two_writers"),
        *(f"adapt.traces.{name}" for name in ("counting.count_cache", "ingest.ingest", "store.plans", "store.runs")),
        *(f"adapt.core.{name}" for name in ("partitioning.build", "report.page", "stage.simulate")),
    ]
)
"""Forks from a process without threads: those of the tests may be Java's and Rust's, which a fork waits for."""


class Writer:
    """A process that does some work, a call at a time."""

    def __init__(self, work: Callable[[], int], said: Path) -> None:
        self._said, self.steps, self.code = said, 0, None
        with chdir(Path(__file__).parents[3]):  # where it finds the tests
            forkserver.ensure_running()
        go, self._go = _SERVER.Pipe(duplex=False)
        self._at, at = _SERVER.Pipe(duplex=False)
        self._process = _SERVER.Process(target=_work, args=(work, said, go, at))
        self._process.start()
        go.close()
        at.close()
        self._at.recv_bytes()

    @property
    def said(self) -> str:
        """What it has printed."""
        return self._said.read_text()

    def step(self) -> bool:
        """Let it go on to its next call; False once it has ended."""
        if self.code is None:
            self._go.send_bytes(b"!")
            assert self._at.poll(300), f"it waits for ever: {self.said}"
            try:
                self._at.recv_bytes()
                self.steps += 1
            except EOFError:
                self._process.join()
                self.code = self._process.exitcode
        return self.code is None

    def pass_calls(self, most: int | None = None) -> bool:
        """Let it pass some calls, or all; False once it has ended."""
        return all(self.step() for _ in range(1_000_000 if most is None else most))

    def close(self) -> None:
        """Kill it if it has not ended."""
        if self.code is None:
            self._process.kill()
            self._process.join()
            self.code = self._process.exitcode
        self._go.close()
        self._at.close()


@contextmanager
def writers(*works: Callable[[], int], said: Path) -> Iterator[list[Writer]]:
    """Some writers before their first calls; at the end, those that go on are killed."""
    started: list[Writer] = []
    try:
        for number, work in enumerate(works):
            started.append(Writer(work, said / f"said-{number}"))
        yield started
    finally:
        for each in started:
            each.close()


def _work(work: Callable[[], int], said: Path, go: Connection, at: Connection) -> None:
    """What the process does, which never returns."""
    code = 70
    try:
        out = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = sys.stderr = open(1, "w", closefd=False)  # noqa: SIM115

        def stop() -> None:
            at.send_bytes(b"!")
            try:
                go.recv_bytes()
            except EOFError:  # whoever steps it has ended
                os._exit(71)

        def watch(_: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def watched(*given: Any, **more: Any) -> Any:
                stop()
                return real(*given, **more)

            return watched

        stop()
        with calls_patched(watch), patch.object(fcntl, "flock", watch("flock", fcntl.flock)):
            code = work()
        sys.stdout.flush()
    finally:
        os._exit(code)
