"""Sources and sinks of Arrow on a disk or in a store."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from adapt.traces.locations.location import StoreFile, StorePath, is_stored


def arrow_source(path: Path | StorePath) -> Any:
    """A source for Arrow: the path, or an object read by ranges."""
    if not is_stored(path):
        return path
    import pyarrow as pa

    return pa.PythonFile(StoreFile(path), mode="r")


@contextmanager
def arrow_sink(path: Path | StorePath) -> Iterator[Path]:
    """A file to write, put into the store at the end.

    On a disk it is the path itself."""
    if not is_stored(path):
        yield cast(Path, path)
        return
    handle, name = tempfile.mkstemp(prefix="adapt-", suffix=path.suffix)
    os.close(handle)
    passing = Path(name)
    try:
        yield passing
        path.upload(passing)
    finally:
        passing.unlink(missing_ok=True)
