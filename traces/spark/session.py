"""The only Spark session: how it is started, and how its failures reach people."""

import atexit
import builtins
import errno
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, UsageError
from adapt.traces.spark.class_archive import FIRST_COMPILER, archive_options
from adapt.traces.spark.java import find_java_home

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
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
}
"""Settings of every session, unless `--spark-conf` overrides them."""

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Kept to this machine where the master is this machine."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Spark master and settings.

    Attributes:
        master: A Spark master: `local[*]`, `local-cluster[...]`, `spark://...`, `yarn`, `k8s://...`.
        conf: Spark settings that go before ours.
        brief: Whether this process ends after little work, so that Spark's Java compiles quickly rather than well.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    brief: bool = False


Spark: TypeAlias = SparkOptions | None
"""Spark options; None for all cores of this machine."""

_jvm_log: list[IO[bytes]] = []
"""Where the Java process writes its console: at most one file without a name. It is kept for the next session, since
the Java process outlives one that is stopped; what is in it is read without moving the place that Java writes at."""

_ours: list[str] = []
"""Applications of Spark that were started here, and so have our settings."""


def spark_session(options: Spark = None) -> "SparkSession":
    """The Spark session of this process, started on first use.

    A Spark that runs already is used, wherever it runs. Where its settings are not those asked for, the session
    returned is one beside it on the same Spark, so that the running one keeps its own.

    Raises:
        EnvironmentFailure: there is no usable Java, or Spark does not start.
        UsageError: a setting is asked for that a running Spark cannot change.
    """
    options = options or SparkOptions()
    running = _running()
    return _started(options) if running is None else _fitted(running, options.conf)


def _running() -> "SparkSession | None":
    """The session that runs in this process, whichever thread started it and whoever did."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


def _fitted(running: "SparkSession", conf: Mapping[str, str]) -> "SparkSession":
    """A session on the same Spark with these settings; ours before them, if somebody else started it."""
    wanted = dict(conf) if running.sparkContext.applicationId in _ours else {**SETTINGS, **conf}
    held = {**dict(running.sparkContext.getConf().getAll()), **running.conf.getAll}
    differing = {name: value for name, value in wanted.items() if held.get(name) != value}
    fixed = [name for name in differing if not running.conf.isModifiable(name)]
    for name in fixed:
        if name in conf:
            raise UsageError(
                f"{name} cannot change while Spark runs (now {held.get(name, 'the default')}); stop Spark first"
                " (spark.stop()), or omit the setting"
            )
        del differing[name]
    return _beside(running, differing) if differing else running


def _beside(spark: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
    """A new session on the same Spark, with the settings of this one and then others."""
    apart = spark.newSession()
    begins_with = apart.conf.getAll
    for name, value in {**spark.conf.getAll, **settings}.items():
        if begins_with.get(name) != value and apart.conf.isModifiable(name):
            apart.conf.set(name, value)
    return apart


def _started(options: SparkOptions) -> "SparkSession":
    from pyspark.sql import SparkSession

    java_home = find_java_home()
    os.environ["JAVA_HOME"] = str(java_home)
    settings = {**SETTINGS, "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "adapt-warehouse")}
    if options.master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= LOOPBACK
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # a cluster's Python may stand elsewhere
    _silence_query_log()
    builder = SparkSession.builder.master(options.master)
    java_options = [
        archive_options(java_home),
        FIRST_COMPILER if options.brief else "",
        options.conf.get(JAVA_OPTIONS, ""),
    ]
    for name, value in {**settings, **options.conf, JAVA_OPTIONS: " ".join(filter(None, java_options))}.items():
        builder = builder.config(name, value)
    if not _jvm_log:
        _jvm_log.append(tempfile.TemporaryFile())  # noqa: SIM115 - it lives as long as the Java process
        atexit.register(_jvm_log[0].close)
    log = _jvm_log[0].fileno()
    begin = os.fstat(log).st_size
    try:
        with _console_into(log), _interrupts_kept():
            session = builder.getOrCreate()
    except Exception as error:
        written = os.pread(log, os.fstat(log).st_size - begin, begin).decode(errors="replace")
        raise EnvironmentFailure(f"Spark does not start: {_why_not_started(error, written)}") from error
    _ours.append(session.sparkContext.applicationId)
    return session


def _silence_query_log() -> None:
    """Keep PySpark from printing a failed query, stack and all, beside the sentence we make of it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def session_in_zone(spark: "SparkSession", time_zone: str) -> "SparkSession":
    """A session on the same Spark in which times without a zone are of `time_zone`; other sessions keep theirs.

    Raises:
        UsageError: Spark knows no such zone.
    """
    apart = _beside(spark, {})
    set_zone(apart, time_zone)
    return apart


def set_zone(spark: "SparkSession", time_zone: str) -> None:
    """Set the zone of times without one.

    Raises:
        UsageError: Spark does not know the zone.
    """
    try:
        spark.conf.set("spark.sql.session.timeZone", time_zone)
    except Exception as error:
        raise UsageError(f"unknown time zone {time_zone!r}; use one such as UTC, Europe/Berlin or +02:00") from error


def literal_path(path: str | os.PathLike[str]) -> str:
    """A path as Spark's readers take it, which see a pattern in brackets, braces, stars and question marks."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", os.fspath(path))


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
        from py4j.protocol import Py4JError, Py4JNetworkError
        from pyspark.errors import PySparkException

        unanswered = type(error) is Py4JError and "An error occurred while calling" in str(error)
        if unanswered or isinstance(error, (ConnectionError, EOFError, Py4JNetworkError)):
            raise EnvironmentFailure(
                f"{doing}: Spark's Java process has ended, perhaps for want of memory; run again, with more of it"
            ) from error
        if not isinstance(error, (Py4JError, PySparkException)) or _is_bug(str(error)):
            raise
        raise translated(error, doing) from error


def translated(error: Exception, doing: str) -> AdaptError:
    """The failure a Spark exception stands for."""
    from pyspark.errors import AnalysisException, ParseException

    text = str(error)
    carried = _CARRIED.search(text)
    if carried:
        return _CARRIED_KINDS[carried.group(1)](bytes.fromhex(carried.group(2)).decode())
    if isinstance(error, (AnalysisException, ParseException)):
        return UsageError(f"{doing}: {first_sentence(text)}")
    if "No space left on device" in text or "Disk quota exceeded" in text:
        free = shutil.disk_usage(tempfile.gettempdir()).free
        return EnvironmentFailure(
            f"{doing}: no space left on the disk ({free:,} bytes free in {tempfile.gettempdir()}, where Spark keeps "
            "temporary files); free some there or at the output, or point --spark-conf spark.local.dir elsewhere"
        )
    damaged = _DAMAGED.search(text)
    if damaged and "FileNotFoundException" not in text:
        path = unquote(re.sub("^file:/+", "/", damaged[1]))
        return BadInput(f"{path} is damaged ({first_sentence(_root_cause(text))}); get the file again")
    if any(sign in text for sign in ("OutOfMemoryError", "MEMORY_LIMIT", "SparkContext was shut down")):
        return EnvironmentFailure(f"{doing}: Spark ran out of memory; add --spark-conf spark.driver.memory=4g")
    return EnvironmentFailure(f"{doing}: Spark failed: {first_sentence(_root_cause(text))}")


def carry_failures(error: Exception) -> Exception:
    """What to raise in a Spark task so that a failure of ours, or of the disk, reaches the driver as itself."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        error = EnvironmentFailure(f"no space left on the disk while writing {error.filename or 'a part'}; free some")
    if isinstance(error, AdaptError):
        kind = next(name for name, kind in _CARRIED_KINDS.items() if isinstance(error, kind))
        return RuntimeError(f"adapt<{kind}:{str(error).encode('utf-8', 'replace').hex()}>")
    return error


_CARRIED_KINDS: dict[str, type[AdaptError]] = {
    kind.__name__: kind for kind in (BadInput, EnvironmentFailure, UsageError, AdaptError)
}
_CARRIED = re.compile(rf"adapt<({'|'.join(_CARRIED_KINDS)}):((?:[0-9a-f]{{2}})*)>")


_DAMAGED = re.compile(r"\[FAILED_READ_FILE\.\w+\] Encountered error while reading file (\S+?)\.(?:\s|$)")
"""What Spark says of a file whose bytes it cannot make sense of."""


def _is_bug(text: str) -> bool:
    """Whether Python code of ours failed in a task with what is neither a failure of ours nor of the machine."""
    failed = _PYTHON_FAILURE.search(text.split("JVM stacktrace")[0])
    if failed is None or _CARRIED.search(text):
        return False
    return not issubclass(getattr(builtins, failed[1].split(":")[0], Exception), (OSError, MemoryError))


_PYTHON_FAILURE = re.compile(r"Traceback \(most recent call last\):\n(?:\s.*\n|\n)*(\w\S*.*)")
"""What a traceback of Python ends with."""


def first_sentence(text: str) -> str:
    """Spark's message without its error class, SQL state, plan and stack."""
    line = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", text.strip())
    line = re.split(r"\s*SQLSTATE|\n|;\s*line \d+ pos|JVM stacktrace", line, maxsplit=1)[0]
    return line.strip().rstrip(".;:")


def _root_cause(text: str) -> str:
    in_python = _PYTHON_FAILURE.search(text)
    if in_python:
        return in_python[1]
    causes = re.findall(r"(?:Caused by: |: )((?:[\w$]+\.)+[\w$]*(?:Exception|Error)): ([^\n]+)", text)
    return causes[-1][1] if causes else text


def _why_not_started(error: Exception, console: str) -> str:
    """What Spark says is wrong, else the first telling line that Java wrote to its console."""
    caused = _root_cause(str(error))
    if caused != str(error):
        return first_sentence(caused)
    telling = [line.strip() for line in console.splitlines() if re.search(r"Error|Exception|error", line)]
    return (telling or [first_sentence(str(error))])[0]


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Leave Ctrl-C to whoever had arranged for it; PySpark's own answer to it takes only the place of Python's."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if callable(handler) and handler is not signal.default_int_handler:
            with suppress(ValueError):  # not the main thread, whose affair signals are
                signal.signal(signal.SIGINT, handler)


@contextmanager
def _console_into(log: int) -> Iterator[None]:
    """Give the console of programs started here to `log`; the Java process keeps it for life.

    So it never holds a pipe open that somebody reads our output from, and what it prints as it ends is not seen.
    """
    held = {}
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        if stream is not None:  # a program without a console has none
            stream.flush()
        try:
            held[number] = os.dup(number)
        except OSError:
            held[number] = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in held:
            os.dup2(log, number)
        yield
    finally:
        for number, console in held.items():
            os.dup2(console, number)
            os.close(console)
