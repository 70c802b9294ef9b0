"""The Python of executors, and the packages that they get."""

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from inspect import getsource
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from adapt.core.errors import EnvironmentFailure
from adapt.traces.spark import python_facts
from adapt.traces.spark.connect import is_remote
from adapt.traces.spark.packages import FOLDER, IN_TASKS, OURS, SEARCHED, packed_once

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

WAIT = "spark.scheduler.maxRegisteredResourcesWaitingTime"
"""Spark's setting of how long to wait for executors."""

NAMES = (OURS, *IN_TASKS, "pyspark")
"""Distributions that executors are asked about."""

PYTHON = "spark.sql.execution.pyspark.python"
"""Spark's setting of the Python that executors start for a session."""

STARTER = "adapt-python"
"""The script that starts Python with packages of ours."""

WORKER_ADDRESS_MB = 1792
"""Address space of a Python worker, which Spark limits on request: 1.7 GB at most in ingests and counts."""

JOB_TAG = "adapt"
"""The tag of our Spark jobs."""

_WAIT_S = "120s"
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Installed:
    """The Python of an executor, or of this process."""

    host: str  # host, folder: its machine, and the working folder, which no two executors share
    folder: str
    python: str = ""  # version; empty if there is no Python of this name
    platform: str = ""  # system and processor
    adapt: str = ""  # fingerprint of our modules; empty without
    # version of each distribution that tasks need, if it is there
    packages: Mapping[str, str] = field(default_factory=dict)
    memory: int = 0  # bytes of the machine or container

    @property
    def minor(self) -> str:
        """Major and minor version of Python."""
        return ".".join(self.python.split(".")[:2])

    @property
    def version(self) -> str:
        """Version and fingerprint of our packages; empty without."""
        return f"{self.packages.get(OURS, '')} ({self.adapt})".strip() if self.adapt else ""

    def lacks(self, here: "Installed") -> list[str]:
        """Packages that tasks need and it lacks; ours also in another version."""
        needed = [each for each in IN_TASKS if each in here.packages and each not in self.packages]
        return needed if self.adapt == here.adapt else ["adapt", *needed]

    def unfit(self, here: "Installed", program: str) -> tuple[str, str] | None:
        """What is wrong with it beyond packages, and the remedy."""
        where = f"--spark-conf {PYTHON}=PATH" if is_remote() else "PYSPARK_PYTHON"
        use = f"set {where} to a Python {here.minor} of the executors"
        if not self.python:
            return f"has no Python that runs as {program}", use
        if self.minor != here.minor:
            return f"runs Python {self.python}, this process {here.python}", use
        if self.platform != here.platform and self.lacks(here):
            lacking = ", ".join(self.lacks(here))
            wrong = f"lacks {lacking}, and is {self.platform}, for which this machine ({here.platform}) has no packages"
            return wrong, "install adapt-streams there"
        return None


@cache
def here() -> Installed:
    """The Python of this process."""
    return Installed(**python_facts.facts(NAMES))


def bring_packages(spark: "SparkSession", found: Sequence[Installed] | None = None) -> bool:
    """Send packages to executors that lack ours.

    An archive of ours among `spark.archives` is used instead. Behind Spark Connect they belong to the session.

    Args:
        found: What the executors have, if known.

    Returns:
        Whether they were sent.
    """
    found = executors(spark) if found is None else found
    if not is_remote():
        _check_address_space(spark)
    for each in found:
        unfit = each.unfit(here(), python_program(spark))
        if unfit:
            raise EnvironmentFailure(f"executor {each.host} {'; '.join(unfit)}")
    lacking = sorted({name for each in found for name in each.lacks(here())})
    if not lacking:
        return False
    if is_remote():
        _send_to_server(spark)
        return True
    if _is_given(spark):
        raise EnvironmentFailure(
            f"spark.archives: the packages in {FOLDER} lack {', '.join(lacking)} as this process has it; pack them"
            " again with `adapt cluster pack`"
        )
    spark.sparkContext.addArchive(f"{packed_once().as_uri()}#{FOLDER}")
    _search_packages(spark)
    return True


def _send_to_server(spark: "SparkSession") -> None:
    """Send packages with a session of Spark Connect, and a script that starts Python with them."""
    found = f'PYTHONPATH="$PWD/{FOLDER}/lib${{PYTHONPATH:+:$PYTHONPATH}}"'
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, STARTER)
        script.write_text(f'#!/bin/sh\n{found} exec {python_program(spark)} "$@"\n')
        spark.addArtifacts(str(script), file=True)  # which Spark makes executable
    spark.addArtifacts(f"{packed_once()}#{FOLDER}", archive=True)
    spark.conf.set(PYTHON, f"./{STARTER}")


def _check_address_space(spark: "SparkSession") -> None:
    """Check the limit that Spark sets to the memory of Python workers."""
    setting = "spark.executor.pyspark.memory"
    limit = int(_java_conf(spark).getSizeAsMb(setting, "0"))
    least = WORKER_ADDRESS_MB * -(-spark.sparkContext.defaultParallelism // _running(spark))
    if 0 < limit < least:
        raise EnvironmentFailure(f"{setting} is {limit} MB, but the Python workers need {least}; set it to {least}m")


def _is_given(spark: "SparkSession") -> bool:
    """Whether `spark.archives` has packages of ours."""
    return f"#{FOLDER}" in str(spark.sparkContext.getConf().get("spark.archives", ""))


def _search_packages(spark: "SparkSession") -> None:
    """Let the Python of tasks find unpacked packages."""
    environment = spark.sparkContext.environment
    given = environment.get("PYTHONPATH", "")
    if not given.startswith(SEARCHED):
        environment["PYTHONPATH"] = f"{SEARCHED}:{given}" if given else SEARCHED


def executors(spark: "SparkSession", *, all: bool = False) -> list[Installed]:
    """What the executors have, in the order of hosts.

    A shell asks their Python, so that a missing or another Python is found too.

    Args:
        all: Whether to ask until each executor that Spark has by now answered; else whoever takes the tasks of one job.
    """
    given = ""
    if not is_remote():
        if _is_given(spark):
            _search_packages(spark)
        given = spark.sparkContext.environment.get("PYTHONPATH", "")
    tasks, program = parallelism(spark), python_program(spark)
    script = getsource(python_facts).encode().hex()
    searched = f'PYTHONPATH={shlex.quote(given)}"${{PYTHONPATH:+:$PYTHONPATH}}" ' if given else ""
    host = "${SPARK_LOCAL_HOSTNAME:-${SPARK_LOCAL_IP:-$(hostname)}}"
    ask = (
        f"cat > /dev/null; PYTHONSAFEPATH=1 {searched}{program} -c 'exec(bytes.fromhex(\"{script}\"))'"
        f' {" ".join(NAMES)} 2> /dev/null || echo "{host} $PWD"'
    )
    literal = ask.replace("\\", "\\\\").replace("'", "\\'")
    query = f"SELECT TRANSFORM (id) USING '{literal}' AS (found STRING) FROM range(0, {tasks}, 1, {tasks})"
    known: dict[tuple[str, str], Installed] = {}
    for _ in range(_ROUNDS if all else 1):
        answers = [str(row[0]) for row in spark.sql(query).collect()]
        found = [
            Installed(**json.loads(each)) if "{" in each else Installed(*each.partition(" ")[::2]) for each in answers
        ]
        known |= {(each.host, each.folder): each for each in found}
        if len(known) >= _running(spark):
            break
    return [known[place] for place in sorted(known)]


def python_program(spark: "SparkSession") -> str:
    """The name by which executors start Python, as a shell reads it."""
    if not is_remote():
        return shlex.quote(str(spark.sparkContext.pythonExec))
    stated = spark.conf.get(PYTHON, "") or ""
    return "${PYSPARK_PYTHON:-python3}" if stated in ("", f"./{STARTER}") else shlex.quote(stated)


def parallelism(spark: "SparkSession") -> int:
    """How many tasks Spark runs at once."""
    if not is_remote():
        return spark.sparkContext.defaultParallelism  # what follows costs a CPU second at first
    plan = str(spark.sql("EXPLAIN SELECT id FROM range(1)").head(1)[0][0])
    return int(plan.rpartition("splits=")[2].rstrip(")\n"))


def is_local(spark: "SparkSession") -> bool:
    """Whether tasks run in the process that plans them."""
    return str(spark.conf.get("spark.master", "")).startswith("local")


def _java_conf(spark: "SparkSession") -> Any:
    """Spark's settings, which read sizes and times."""
    return spark.sparkContext._jsc.sc().conf()


def _running(spark: "SparkSession") -> int:
    """Executors that Spark has now, without the driver unless it is the only one; 1 behind Spark Connect."""
    return 1 if is_remote() else max(1, int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1)


def watch_executors(spark: "SparkSession", wait_s: float | None = None, over: Event | None = None) -> None:
    """Cancel our jobs that wait for an executor in vain.

    Until Spark ends. Ours are those with `JOB_TAG`, as Spark may be a user's own.

    Args:
        wait_s: Seconds to wait; by default what `WAIT` says.
        over: Ends the watch.
    """
    context = spark.sparkContext
    if wait_s is None:
        wait_s = int(_java_conf(spark).getTimeAsSeconds(WAIT, _WAIT_S))
    memory = context.getConf().get("spark.executor.memory", "1g")
    reason = (
        f"no executor for {wait_s} s: {context.master} has no worker with {memory} of memory and cores free; start one,"
        f" ask for less, as with --spark-conf spark.executor.memory=512m, or wait longer with {WAIT}=10min"
    )
    Thread(target=_watch, args=(context, wait_s, reason, over or Event()), daemon=True).start()


def _watch(context: "SparkContext", wait_s: float, reason: str, over: Event) -> None:
    from py4j.protocol import Py4JError

    status, served = context._jsc.sc(), monotonic()
    with suppress(Py4JError, ConnectionError):  # Spark ended
        while not over.wait(min(1, wait_s)):
            alone = status.getExecutorMemoryStatus().size() == 1
            jobs = list(status.statusTracker().getJobIdsForTag(JOB_TAG)) if alone else []
            if not jobs:
                served = monotonic()
            elif monotonic() - served >= wait_s:
                for job in jobs:
                    status.cancelJob(job, reason)


@contextmanager
def tagged_jobs() -> Iterator[None]:
    """Give the Spark jobs of this thread `JOB_TAG`."""
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None or is_remote() else pyspark.SparkContext._active_spark_context
    if context is None or JOB_TAG in context.getJobTags():
        yield
        return
    context.addJobTag(JOB_TAG)
    try:
        yield
    finally:
        from py4j.protocol import Py4JError

        with suppress(Py4JError, ConnectionError):  # Spark ended
            context.removeJobTag(JOB_TAG)
