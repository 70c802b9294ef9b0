"""Standard input as a source file: `-` among the sources."""

import shutil
import sys
from pathlib import Path

from adapt.core.errors import UsageError

_CHUNK_BYTES = 8 << 20

STDIN = "-"
"""The source argument that stands for what is piped in."""

LABEL = "stdin"
"""`_path` of its rows."""


def keep_stdin(path: Path) -> None:
    """Put what is piped in into a file, since sources are read more than once.

    Raises:
        UsageError: nothing is piped in: input would come from the keyboard, or is closed.
        OSError: it cannot be read, or the file cannot be written.
    """
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        raise UsageError(
            f"the source {STDIN} is standard input, but nothing is piped into it; name a file, or pipe one"
        )
    with path.open("xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, _CHUNK_BYTES)
