"""Standard input as a source file: `-` among the sources."""

import shutil
import sys
from pathlib import Path

from adapt.core.errors import UsageError
from adapt.traces.locations.arrow import arrow_sink

_CHUNK_BYTES = 8 << 20

STDIN = "-"
"""The source argument for standard input."""

LABEL = "stdin"
"""`_path` of its rows."""


def keep_stdin(path: Path) -> None:
    """Store standard input in a file, to read it several times."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise UsageError(f"{STDIN} reads standard input, but nothing is piped into it; pipe a file, or name one")
    with arrow_sink(path) as own, own.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, _CHUNK_BYTES)
