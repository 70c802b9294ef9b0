"""Writers in processes of their own that stop before each call which changes names, locks or syncs."""

import fcntl
import gc
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.trust.crashes.recorded import calls_patched


class Writer:
    """A process that does some work, a call at a time."""

    def __init__(self, work: Callable[[], int], said: Path) -> None:
        self._said, self.steps, self.code = said, 0, None
        go, self._go = os.pipe()
        self._at, at = os.pipe()
        self._process = os.fork()
        if not self._process:
            os.close(self._go)  # so that it ends with its parent
            _work(work, said, go, at)
        os.close(go)
        os.close(at)
        os.read(self._at, 1)

    @property
    def said(self) -> str:
        """What it has printed."""
        return self._said.read_text()

    def step(self) -> bool:
        """Let it go on to its next call; False once it has ended."""
        if self.code is None:
            os.write(self._go, b"!")
            assert select.select([self._at], [], [], 300)[0], f"it waits for ever: {self.said}"
            if os.read(self._at, 1):
                self.steps += 1
            else:
                self.code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        return self.code is None

    def pass_calls(self, most: int | None = None) -> bool:
        """Let it pass some calls, or all; False once it has ended."""
        return all(self.step() for _ in range(1_000_000 if most is None else most))

    def close(self) -> None:
        """Kill it if it has not ended."""
        if self.code is None:
            os.kill(self._process, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        os.close(self._go)
        os.close(self._at)


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


def _work(work: Callable[[], int], said: Path, go: int, at: int) -> None:
    """What the process does, which never returns."""
    code = 70
    gc.freeze()  # objects of Java that the parent has are its own to let go
    try:
        out = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = sys.stderr = open(1, "w", closefd=False)  # noqa: SIM115

        def stop() -> None:
            os.write(at, b"!")
            if not os.read(go, 1):
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
