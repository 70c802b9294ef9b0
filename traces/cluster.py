"""Check of a cluster: what its executors have and lack."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adapt.core.errors import EnvironmentFailure, UsageError
from adapt.core.table import Cell, Column, Displayed, Kind, Table
from adapt.core.units.amounts import bytes_of
from adapt.traces.reach import Reach, reach
from adapt.traces.spark.connect import is_remote
from adapt.traces.spark.executors import (
    Installed,
    bring_packages,
    executors,
    here,
    is_local,
    parallelism,
    python_program,
)
from adapt.traces.spark.lazy import SparkSession
from adapt.traces.spark.packages import OURS
from adapt.traces.spark.session import Spark, SparkOptions, is_running, spark_failures, spark_session, started_here

SCHEMA = "adapt.cluster/1"

WORKER_BYTES = 400 << 20
"""Memory of a Python worker: 362 MB at most in ingests and counts of millions of rows."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What a host lacks, and the remedy."""

    host: str
    missing: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that the executors of one machine ask for."""

    heap: int  # bytes of an executor's Java
    workers: int  # Python workers of an executor, one per core

    @property
    def needed(self) -> int:
        """Bytes of an executor with its Python workers."""
        return self.heap + self.workers * WORKER_BYTES


@dataclass(frozen=True, slots=True, repr=False)
class ClusterCheck(Displayed):
    """What the executors of a cluster have."""

    here: Installed  # the Python of this process
    executors: tuple[Installed, ...]
    sent: bool  # whether they get our packages from here
    memory: Memory  # what each executor asks for
    reached: tuple[Reach, ...]  # what they can do at each location
    missing: tuple[Missing, ...]  # what is missing, with the remedy

    @property
    def passed(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def exit_code(self) -> int:
        """That of the command."""
        return 0 if self.passed else EnvironmentFailure.exit_code

    @property
    def said(self) -> Sequence[str]:
        """The outcome."""
        if self.missing:
            return ("The cluster is not ready", *map(_sentence, self.missing))
        brought = "adapt sends them the packages that they lack" if self.sent else "they have all packages"
        return ("The cluster is ready", f"Executors run Python {self.here.minor}, as this process; {brought}.")

    def displayed(self) -> list[Table]:
        """Executors, packages, locations."""
        return [self._executors(), self._packages(), *([self._locations()] if self.reached else [])]

    def as_data(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "schema": SCHEMA,
            "passed": self.passed,
            "here": asdict(self.here),
            "executors": [asdict(each) | {"needed": self.memory.needed} for each in self.executors],
            "packages_sent": self.sent,
            "locations": [asdict(each) for each in self.reached],
            "missing": [asdict(each) for each in self.missing],
        }

    def _executors(self) -> Table:
        columns = (
            Column("host"),
            Column("executors", Kind.COUNT),
            Column("python"),
            Column("adapt"),
            Column("memory", Kind.BYTES, about="of the machine or container"),
            Column("needed", Kind.BYTES, about="by the executors of the host and their Python workers"),
        )
        rows: dict[tuple[Cell, ...], int] = {}
        for each in self.executors:
            kind = (each.host, each.python or "none", each.version or "none", each.memory or None)
            rows[kind] = rows.get(kind, 0) + 1
        table = [
            (host, n, python, ours, room, n * self.memory.needed) for (host, python, ours, room), n in rows.items()
        ]
        note = f"This process: Python {self.here.python}, adapt {self.here.version}"
        return Table.from_rows("Executors", columns, table, note)

    def _packages(self) -> Table:
        columns = (Column("package"), Column("here"), Column("executors"))
        rows = []
        for name, version in self.here.packages.items():
            there = {each.packages.get(name, "none") for each in self.executors}
            rows.append((name, version, ", ".join(sorted(there))))
        note = "Executors use those from here, which adapt sends" if self.sent else ""
        return Table.from_rows("Packages", columns, rows, note)

    def _locations(self) -> Table:
        columns = (Column("location"), Column("host"), Column("read"), Column("write"))
        rows = [(each.location, each.host, each.read or None, each.write or None) for each in self.reached]
        return Table.from_rows("Locations", columns, rows)


def check_cluster(options: Spark = None, places: Sequence[Path] = ()) -> ClusterCheck:
    """Ask the executors of a cluster what they have.

    Args:
        places: Locations that they have to read and write.
    """
    options = options or SparkOptions()
    if options.master is None and options.server is None and not is_running():
        raise UsageError("--master is required: the cluster to check, such as spark://HOST:7077 or sc://HOST:15002")
    spark = spark_session(options, as_found=True)
    with spark_failures("asking the executors"):
        found = executors(spark, all=True)
        memory = _memory(spark, len(found))
    missing, sent = _packages_missing(spark, found)
    missing += _memory_missing(found, memory)
    reached = reach(spark, places) if not missing else []
    missing += [
        Missing(each.host, f"{each.location}: {wrong}", "mount it on all machines at the same path, or use s3://")
        for each in reached
        for wrong in {each.read, each.write}
        if not each.complete and wrong not in ("yes", "")
    ]
    return ClusterCheck(here(), tuple(found), sent, memory, tuple(reached), tuple(missing))


def _sentence(missing: Missing) -> str:
    return f"{missing.host}: {missing.missing}; {missing.remedy}."


def _packages_missing(spark: SparkSession, found: Sequence[Installed]) -> tuple[list[Missing], bool]:
    """What keeps executors from our tasks, and whether packages were sent."""
    missing = []
    for each in found:
        lacking, unfit = each.lacks(here()), each.unfit(here(), python_program(spark))
        if unfit:
            missing.append(Missing(each.host, *unfit))
        elif lacking and not started_here(spark):
            remedy = f"install adapt-streams {here().packages[OURS]} there, or start Spark with its packages"
            missing.append(Missing(each.host, f"lacks {', '.join(lacking)}", remedy))
    if missing:
        return missing, False
    try:
        return [], bring_packages(spark, found)
    except EnvironmentFailure as error:  # a given archive is outdated
        lacks, _, remedy = str(error).rpartition("; ")
        return [Missing("all", lacks, remedy)], False


def _memory(spark: SparkSession, count: int) -> Memory:
    workers = -(-parallelism(spark) // max(1, count))
    if is_remote():
        stated = str(spark.conf.get("spark.driver.memory" if is_local(spark) else "spark.executor.memory", "1g"))
        return Memory(round(bytes_of(f"{stated.rstrip('bB')}iB")), workers)
    return Memory(int(spark.sparkContext._jsc.sc().executorMemory()) << 20, workers)


def _memory_missing(found: Sequence[Installed], memory: Memory) -> list[Missing]:
    """Hosts whose memory their executors exceed."""
    missing = []
    counts: Mapping[str, int] = {each.host: sum(other.host == each.host for other in found) for each in found}
    for host, room in {each.host: each.memory for each in found if each.memory}.items():
        needed = counts[host] * memory.needed
        if needed > room:
            missing.append(
                Missing(
                    host,
                    f"has {room >> 20:,} MB of memory, but its executors need {needed >> 20:,} MB",
                    "lower spark.executor.memory or spark.executor.cores",
                )
            )
    return missing
