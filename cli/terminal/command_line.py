"""The command as it was typed, for manifests and failures."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_SECRET = "secret|password|token|access[.]?key"
"""Parts of the names of settings whose values Spark redacts too."""


@contextmanager
def typed(arguments: Sequence[str]) -> Iterator[None]:
    """Make these arguments the ones that `command_line` returns."""
    outer = _typed.set(tuple(arguments))
    try:
        yield
    finally:
        _typed.reset(outer)


def command_line() -> str:
    """The command as it was typed, without the values of settings that hold secrets."""
    words = [re.sub(rf"(?i)^((?:--spark-conf=)?[^=]*({_SECRET})[^=]*=).*", r"\1...", word) for word in _typed.get()]
    return shlex.join(["adapt", *words])
