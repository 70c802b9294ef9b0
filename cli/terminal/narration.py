"""What a command says while it works: on stderr, so that stdout stays data."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from adapt.core.values import visible

if TYPE_CHECKING:
    from pathlib import Path


class Step(Protocol):
    """Tells a progress display how much is done, and of how much where that is known."""

    def __call__(self, done: float, total: float | None = None, what: str | None = None, /) -> None:
        """So much is done, of something else than before if `what` is given."""


class Verbosity(IntEnum):
    """How much a command says besides its result."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_verbosity = Verbosity.NORMAL


def set_verbosity(verbosity: Verbosity) -> None:
    """Choose how much is said; `main` does this once, from `-q` and `-v`."""
    global _verbosity
    _verbosity = verbosity


def verbosity() -> Verbosity:
    """How much is said now."""
    return _verbosity


def narrate(message: str, level: Verbosity = Verbosity.NORMAL) -> None:
    """Say one line on stderr, unless less than `level` was asked for. Keys in the message cannot act on a terminal."""
    if _verbosity >= level:
        line = "\n".join(visible(part) for part in message.split("\n"))
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        with suppress(OSError):  # nobody reads along: no reason to stop working
            sys.stdout.flush()  # results said before this stay before it where both go to one place
            print(line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr, flush=True)


def narrate_written(path: "Path") -> None:
    """Say where a result was put."""
    narrate(f"wrote {path}")


@contextmanager
def progress(label: str) -> Iterator[Step]:
    """A bar on stderr while the block runs, where stderr is a terminal and not quiet; otherwise nothing.

    Example:
        with progress("sorting by time") as step:
            step(done, total)
    """
    if _verbosity < Verbosity.NORMAL or not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(escape(visible(label)), total=None)

        def step(done: float, total: float | None = None, what: str | None = None) -> None:
            description = None if what is None else escape(visible(what))
            display.update(task, completed=done, total=total, description=description)

        yield step


def _silent(_done: float, _total: float | None = None, _what: str | None = None) -> None:
    return None
