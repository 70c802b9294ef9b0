"""The command line, for manifests and tracebacks, and its exit code."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from adapt.core.errors import redacted_word

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


@contextmanager
def typed(arguments: Sequence[str]) -> Iterator[None]:
    """Make `command_line` return these arguments."""
    outer = _typed.set(tuple(arguments))
    try:
        yield
    finally:
        _typed.reset(outer)


def command_line() -> str:
    """The command line as typed, secrets redacted."""
    return shlex.join(["adapt", *map(redacted_word, _typed.get())])


def exit_code_of(result: Any) -> int:
    """Exit code of a command's result, which may be a code."""
    return result if isinstance(result, int) else int(getattr(result, "exit_code", 0))
