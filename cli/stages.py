"""Progress of work on Spark, shown on a terminal as it goes from stage to stage."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapt.cli.narration import Verbosity, progress, verbosity

if TYPE_CHECKING:
    from adapt.traces.progress import Progress


@contextmanager
def stages() -> "Iterator[Progress]":
    """A callback for the library: what is being done, how much is done, of how much; silent where nobody watches."""
    from adapt.traces.progress import silent

    if verbosity() < Verbosity.NORMAL or not sys.stderr.isatty():
        yield silent
        return
    with progress("starting Spark") as step:
        yield lambda what, done, total: step(done, total or None, what)
