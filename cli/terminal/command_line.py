"""The command line, for manifests and tracebacks."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

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
