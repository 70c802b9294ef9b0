"""The command line, for manifests and tracebacks, and its exit code."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_SECRET = "secret|password|token|access[.]?key"
"""Settings with these parts in their names are redacted, as in Spark."""


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
    words = [re.sub(rf"(?i)^((?:--spark-conf=)?[^=]*({_SECRET})[^=]*=).*", r"\1...", word) for word in _typed.get()]
    return shlex.join(["adapt", *words])


def exit_code_of(result: Any) -> int:
    """Exit code of a command's result, which may be a code."""
    return result if isinstance(result, int) else int(getattr(result, "exit_code", 0))
