"""The only Spark session: how it is started, and how its failures reach people."""

import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, UsageError
from adapt.traces.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.app.name": "adapt",
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false",  # merging partitions behind our back would move rows between parts
    "spark.sql.ansi.enabled": "false",  # a bad cast gives null and so a counted reject, not a failed job
    "spark.sql.caseSensitive": "true",  # columns that differ only in case are different columns
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.hadoop.parquet.page.write-checksum.enabled": "true",
}
"""What every session has, unless `--conf` says otherwise."""

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Kept to this machine where the master is this machine."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs and with what settings beside ours.

    Attributes:
        master: A Spark master: `local[*]`, `local-cluster[...]`, `spark://...`, `yarn`, `k8s://...`.
        conf: Spark settings that go before ours.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)


_jvm_log: list[IO[bytes]] = []
"""Where the Java process writes its console; at most one, held open while it lives."""


def spark_session(options: SparkOptions | None = None) -> "SparkSession":
    """The Spark session of this process, started on first use.

    Raises:
        EnvironmentFailure: there is no usable Java, or Spark does not start.
    """
    options = options or SparkOptions()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        for name, value in options.conf.items():
            if running.conf.isModifiable(name):
                running.conf.set(name, value)
        return running
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {**SETTINGS, "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "adapt-warehouse")}
    if options.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= LOOPBACK
    _silence_query_log()
    builder = SparkSession.builder.master(options.master)
    for name, value in {**settings, **options.conf}.items():
        builder = builder.config(name, value)
    log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the Java process
    try:
        with _console_into(log):
            session = builder.getOrCreate()
    except Exception as error:
        raise EnvironmentFailure(f"Spark does not start: {_why_not_started(error, log)}") from error
    _jvm_log[:] = [log]
    return session


def _silence_query_log() -> None:
    """Keep PySpark from printing a failed query, stack and all, beside the sentence we make of it."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True


def session_in_zone(spark: "SparkSession", time_zone: str) -> "SparkSession":
    """A session on the same Spark in which times without a zone are of `time_zone`; other sessions keep theirs.

    Raises:
        UsageError: Spark knows no such zone.
    """
    apart = spark.newSession()
    for name, value in SETTINGS.items():
        if apart.conf.isModifiable(name):
            apart.conf.set(name, spark.conf.get(name, value) or value)
    try:
        apart.conf.set("spark.sql.session.timeZone", time_zone)
    except Exception as error:
        raise UsageError(
            f"time zone {time_zone!r} is not known; use a name such as UTC, Europe/Berlin or +02:00"
        ) from error
    return apart


@contextmanager
def spark_failures(doing: str) -> Iterator[None]:
    """Let failures of Spark leave as one sentence that begins with what was being done.

    A failure of ours inside a Spark task comes out as itself.
    """
    try:
        yield
    except AdaptError:
        raise
    except Exception as error:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        if not isinstance(error, (Py4JError, PySparkException)):
            raise
        raise translated(error, doing) from error


def translated(error: Exception, doing: str) -> AdaptError:
    """The failure a Spark exception stands for."""
    from pyspark.errors import AnalysisException, ParseException

    text = str(error)
    carried = _CARRIED.search(text)
    if carried:
        kind = {kind.__name__: kind for kind in (BadInput, EnvironmentFailure, UsageError)}[carried.group(1)]
        return kind(bytes.fromhex(carried.group(2)).decode())
    if isinstance(error, (AnalysisException, ParseException)):
        return UsageError(f"{doing}: {first_sentence(text)}")
    if "No space left on device" in text:
        free = shutil.disk_usage(tempfile.gettempdir()).free
        return EnvironmentFailure(
            f"{doing}: no space left on the disk ({free:,} bytes free where Spark keeps temporary files); "
            "free some, or point --conf spark.local.dir at a larger disk"
        )
    if "OutOfMemoryError" in text or "MEMORY_LIMIT" in text:
        return EnvironmentFailure(f"{doing}: Spark ran out of memory; raise it with --conf spark.driver.memory=4g")
    return EnvironmentFailure(f"{doing}: Spark failed: {first_sentence(_root_cause(text))}")


def carry_failures(error: Exception) -> Exception:
    """What to raise in a Spark task so that a failure of ours, or of the disk, reaches the driver as itself."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        error = EnvironmentFailure(f"no space left on the disk while writing {error.filename or 'a part'}; free some")
    if isinstance(error, AdaptError):
        return RuntimeError(f"adapt<{type(error).__name__}:{str(error).encode().hex()}>")
    return error


_CARRIED = re.compile(r"adapt<(\w+):([0-9a-f]*)>")


def first_sentence(text: str) -> str:
    """Spark's message without its error class, SQL state, plan and stack."""
    line = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", text.strip())
    line = re.split(r"\s*SQLSTATE|\n|;\s*line \d+ pos|JVM stacktrace", line, maxsplit=1)[0]
    return line.strip().rstrip(".;:")


def _root_cause(text: str) -> str:
    causes = re.findall(r"(?:Caused by: |: )((?:[\w$]+\.)+[\w$]*(?:Exception|Error)): ([^\n]+)", text)
    return causes[-1][1] if causes else text


def _why_not_started(error: Exception, log: IO[bytes]) -> str:
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"Error|Exception|error", line)]
    return (telling or lines or [first_sentence(str(error))])[0]


@contextmanager
def _console_into(log: IO[bytes]) -> Iterator[None]:
    """Give the standard error of programs started here to `log`; the Java process keeps it for life."""
    sys.stderr.flush()
    console = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(console, 2)
        os.close(console)
