"""Peak memory of this process, Spark's Java process and its Python workers."""

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

Name = TypeVar("Name", bound=Hashable)


@contextmanager
def watched(named: Callable[[], Iterable[tuple[Name, int]]]) -> Iterator[dict[Name, float]]:
    """Peak memory in MiB of processes by name, filled in while the body runs.

    Args:
        named: Gives the processes of the moment, each with its name.
    """
    over, peaks = threading.Event(), dict[Name, float]()

    def watch() -> None:
        while not over.wait(0.05):
            for name, process in named():
                peak = peak_mib(process)
                if peak is not None:
                    peaks[name] = max(peaks.get(name, 0.0), peak)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


def watched_workers(java: int) -> AbstractContextManager[dict[int, float]]:
    """Peak memory in MiB of a Spark session's Python workers.

    Args:
        java: Spark's Java process, since other programs may run Spark too.
    """
    return watched(lambda: [(worker, worker) for worker in _workers(java)])


def peak_mib(process: int) -> float | None:
    """Peak memory of a process in MiB; None if it has ended."""
    peak = _field_of(process, "VmHWM")
    return None if peak is None else int(peak.split()[0]) / 1024


def cpu_s(process: int) -> float:
    """CPU seconds of a process without its children; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def java_of(spark: SparkSession) -> int:
    """Java process of the Spark session of this program."""
    return int(spark.sparkContext._gateway.proc.pid)


def descendants(process: int) -> list[int]:
    """All descendants of a process."""
    parents = _parents()
    found = [process]
    for parent in found:
        found += [each for each, above in parents.items() if above == parent]
    return found[1:]


def _workers(java: int) -> list[int]:
    """Spark's Python workers: the children of the daemons that Java started."""
    parents = _parents()
    daemons = {each for each, parent in parents.items() if parent == java and "pyspark.daemon" in command_of(each)}
    return [each for each, parent in parents.items() if parent in daemons]


def _parents() -> dict[int, int]:
    processes = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return {process: int(_field_of(process, "PPid") or 0) for process in processes}


def _field_of(process: int, name: str) -> str | None:
    """A status line of a process; None if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:")), None)


def command_of(process: int) -> str:
    """Command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
