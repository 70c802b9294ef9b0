"""What a command says while it works: on stderr, so that stdout stays data."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING

from adapt.core.values import visible
from adapt.traces.spark.progress import Progress, silent

if TYPE_CHECKING:
    from pathlib import Path


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
def progress() -> Iterator[Progress]:
    """A bar on stderr while the block runs, where stderr is a terminal and not quiet; otherwise nothing."""
    if _verbosity < Verbosity.NORMAL or not sys.stderr.isatty():
        yield silent
        return
    from rich import progress as bars
    from rich.console import Console
    from rich.markup import escape

    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TaskProgressColumn())
    console = Console(stderr=True)
    with bars.Progress(*columns, bars.TimeElapsedColumn(), console=console, transient=True) as display:
        task = display.add_task("starting", total=None)
        yield lambda what, done, total: display.update(
            task, description=escape(visible(what)), completed=done, total=total or None
        )
