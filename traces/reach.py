"""Which locations the executors of a cluster can read and write."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from uuid import uuid4

import pyarrow as pa

from adapt.core.errors import AdaptError
from adapt.traces.locations.location import is_stored
from adapt.traces.spark.executors import parallelism
from adapt.traces.spark.lazy import SparkSession
from adapt.traces.spark.python_facts import facts
from adapt.traces.spark.runner import in_tasks
from adapt.traces.spark.session import spark_failures

YES = "yes"

_TASKS_A_CORE = 2
_SCHEMA = "place string, host string, read string, write string"


@dataclass(frozen=True, slots=True)
class Reach:
    """What an executor can do at a location."""

    location: str
    host: str
    read: str  # read, write: "yes", or why not; empty if not tried
    write: str

    @property
    def complete(self) -> bool:
        """Whether nothing failed."""
        return {self.read, self.write} <= {YES, ""}


@dataclass(frozen=True, slots=True)
class _Mark:
    """A file by which executors find the same place."""

    path: Path  # one that is there, or one to be
    data: bytes | None  # its bytes; None for a file of the user, which is read only


def reach(spark: SparkSession, places: Sequence[Path]) -> list[Reach]:
    """Read and write at each location from each executor.

    A file is read. In a folder, and in that of an output, small files are written, read and removed: an executor that
    mounts another disk at the same path is found too.
    """
    marks: dict[str, _Mark] = {}
    found = []
    for place in places:
        try:
            marks[str(place)] = _marked(place)
        except (AdaptError, OSError) as error:
            found.append(Reach(str(place), "this machine", "", _why(error)))
    tasks = _TASKS_A_CORE * parallelism(spark)

    def work(task: int) -> Iterator[pa.RecordBatch]:
        host = facts(())["host"]
        rows = [{"place": at, "host": host, **_tried(mark, f"{host}-{task}")} for at, mark in marks.items()]
        yield pa.RecordBatch.from_pylist(rows)

    try:
        with spark_failures("trying the locations"):
            answers = in_tasks(spark, [[task] for task in range(tasks)], work, _SCHEMA).collect() if marks else []
        found += [Reach(*row) for row in sorted({tuple(row) for row in answers})]
    finally:
        for mark in marks.values():
            with suppress(OSError, AdaptError):
                if mark.data is not None:
                    mark.path.unlink(missing_ok=True)
    return found


def _marked(given: Path) -> _Mark:
    """The mark of a location, written unless it is a file or a folder that is only read."""
    place: Path = cast(Path, given) if is_stored(given) else given.absolute()
    if place.is_file():
        return _Mark(place, None)
    folder, data = place if place.is_dir() or is_stored(place) else place.parent, uuid4().bytes
    mark = _Mark(folder / f".adapt-check-{uuid4().hex}", data)
    try:
        mark.path.write_bytes(data)
    except (AdaptError, OSError):
        present = next((each for each in place.iterdir() if each.is_file()), None) if place.is_dir() else None
        if present is None:
            raise
        return _Mark(present, None)
    return mark


def _tried(mark: _Mark, name: str) -> dict[str, str]:
    """What this process can do where the mark is."""
    read = _outcome(_read, mark)
    tries = mark.data is not None and read == YES
    return {"read": read, "write": _outcome(_write, mark.path.with_name(f"{mark.path.name}-{name}")) if tries else ""}


def _outcome(act: Callable[..., str], *given: object) -> str:
    try:
        return act(*given)
    except (AdaptError, OSError) as error:
        return _why(error)


def _read(mark: _Mark) -> str:
    with mark.path.open("rb") as file:
        data = file.read(64)
    return YES if mark.data in (None, data) else "another disk than here"


def _write(path: Path) -> str:
    path.write_bytes(b"")
    path.unlink()
    return YES


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
