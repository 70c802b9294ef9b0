"""Time and peak memory of Spark jobs at growing sizes."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from memory import descendants, java_of, peak_mib, watched_workers

from adapt.traces.spark.session import SparkOptions, spark_session

SPARK = SparkOptions("local[2]", {"spark.driver.memory": "2g"})


@dataclass(frozen=True, slots=True)
class Footprint:
    """Footprint of one job.

    Attributes:
        rows: Rows of the job.
        seconds: Wall time.
        cpu_s: CPU time of this process, Java and Spark's Python workers.
        driver_mib, java_mib, worker_mib: Peak memory of this process, of Java, and of the largest Python worker.
    """

    rows: int
    seconds: float
    cpu_s: float
    driver_mib: float
    java_mib: float
    worker_mib: float

    @property
    def line(self) -> str:
        """One line for people."""
        return (
            f"{self.rows:,} rows: {self.seconds:.1f} s, {self.rows / self.seconds / 1e6:.2f} M rows/s;"
            f" {self.cpu_s:.1f} s of CPU, {self.cpu_s / self.rows * 1e6:.3f} per million rows;"
            f" peaks {self.driver_mib:,.0f} MiB here, {self.java_mib:,.0f} Java, {self.worker_mib:,.0f} per worker"
        )


def footprint(rows: int, warm: Callable[[], object], work: Callable[[], object]) -> Footprint:
    """Measure a job, after a small warm-up job."""
    java = java_of(spark_session(SPARK))
    warm()
    with watched_workers(java) as peaks:
        begun, spent = perf_counter(), _cpu_s(java)
        work()
        seconds, cpu_s = perf_counter() - begun, _cpu_s(java) - spent
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Footprint(rows, seconds, cpu_s, driver, peak_mib(java) or 0.0, max(peaks.values(), default=0.0))


def apart(script: str, *arguments: object) -> Footprint:
    """Footprint of a script, run in a separate process.

    The script ends in `told`.
    """
    command = [sys.executable, script, *map(str, arguments)]
    took = Footprint(**json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1]))
    print(took.line, flush=True)
    return took


def told(took: Footprint) -> int:
    """Print it for `apart`."""
    print(json.dumps(asdict(took)))
    return 0


def _cpu_s(java: int) -> float:
    """CPU time of this process, Java and all its descendants, ended ones included."""
    ticks = 0
    for process in (os.getpid(), java, *descendants(java)):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15] if process != os.getpid() else fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")
