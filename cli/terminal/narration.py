"""Messages and progress of commands on stderr."""

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from adapt.core.errors import redacted
from adapt.core.reading import LOUD, READING_LOG, Reading
from adapt.core.values import visible
from adapt.traces.spark.names import RUNNER_LOG
from adapt.traces.spark.progress import Progress, silent

if TYPE_CHECKING:
    from pathlib import Path

    from adapt.core.engines.names import AnyScheme


class Verbosity(IntEnum):
    """How much a command prints besides its result."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_verbosity = Verbosity.NORMAL


_ran: dict[str, None] = {}
"""Where the work of a command ran, to be printed once."""


_readings: dict[str, Mapping[str, Any]] = {}
"""How the sources behind the command's artefacts were read, by content hash of the trace."""


_assumptions: dict[str, None] = {}
"""Sentences on the type by which keys are placed."""


class _Narrated(logging.Handler):
    """Prints warnings of the library, if verbose its whole log, and keeps where work ran."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == RUNNER_LOG:
            _ran[record.getMessage()] = None
        elif record.name == READING_LOG:
            match record.args:
                case {"content_hash": trace, "reading": dict(reading)}:
                    _narrate_reading(trace, reading)
        else:
            is_warning = record.levelno >= logging.WARNING
            narrate(record.getMessage(), Verbosity.NORMAL if is_warning else Verbosity.VERBOSE)


_LOG = logging.getLogger("adapt")
_LOG.setLevel(logging.INFO)
_LOG.addHandler(_Narrated())


def set_verbosity(verbosity: Verbosity) -> None:
    """Set the verbosity; `main` does this once, from `-q` and `-v`."""
    global _verbosity
    _verbosity = verbosity
    _readings.clear()
    _assumptions.clear()


def verbosity() -> Verbosity:
    """The current verbosity."""
    return _verbosity


_mute: ContextVar[bool] = ContextVar("mute", default=False)


@contextmanager
def muted() -> Iterator[None]:
    """Print nothing, for a command that is called as a function."""
    before = _mute.set(True)
    _readings.clear()
    try:
        yield
    finally:
        _mute.reset(before)


def is_muted() -> bool:
    """Whether nothing is printed."""
    return _mute.get()


def narrate(message: str, level: Verbosity = Verbosity.NORMAL) -> None:
    """Print an escaped line on stderr if the verbosity is high enough."""
    if _verbosity >= level and not is_muted():
        line = "\n".join(visible(part) for part in redacted(message).split("\n"))
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        with suppress(OSError):  # keep working if stderr is closed
            sys.stdout.flush()  # keep the order where both go to one file
            print(line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr, flush=True)


def narrate_keys(source: "Path", scheme: "AnyScheme | None") -> None:
    """Say the type by which an engine places keys, if unsure."""
    from adapt.traces.store.trace import note_on_keys

    note = note_on_keys(source, scheme)
    if note:
        narrate_assumption(note)


def narrate_assumption(note: str) -> None:
    """Say what an answer rests on.

    The command's JSON document has it too.
    """
    _assumptions[note] = None
    narrate(note)


def narrate_written(path: "Path") -> None:
    """Print where a result was written."""
    narrate(f"wrote {path}")


def _narrate_reading(trace: Any, record: Mapping[str, Any]) -> None:
    """Print once which rows of a source were rejected, if any; the command's JSON document has it too."""
    if trace not in _readings:
        _readings[trace] = record
        reading = Reading.from_data(record)
        if reading.sentence:
            narrate(f"{'warning: ' if reading.share > LOUD else ''}{record['trace']}: {reading.sentence}")


def narrate_guesses(guesses: Sequence[str]) -> None:
    """Print the settings of a source that were guessed, if any."""
    if guesses:
        narrate(f"guessed: {', '.join(guesses)}")


def readings() -> dict[str, list[Any]]:
    """The document's fields on rejected rows, guesses and assumptions, if any."""
    sources = list(_readings.values())
    return {name: held for name, held in (("readings", sources), ("assumptions", list(_assumptions))) if held}


@contextmanager
def runners_narrated() -> Iterator[None]:
    """Print at the end where the work ran, unless it failed."""
    _ran.clear()
    yield
    for sentence in _ran:
        narrate(sentence)


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar on stderr, on a terminal that is not quiet."""
    if _verbosity < Verbosity.NORMAL or is_muted() or not sys.stderr.isatty():
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
            task, description=escape(visible(redacted(what))), completed=done, total=total or None
        )
