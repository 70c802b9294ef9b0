"""The Spark session of the process, and its failures as messages."""

import atexit
import builtins
import errno
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, UsageError, redacted_word
from adapt.traces.locations.task_environment import environment_of_stores, take_environment
from adapt.traces.spark.class_archive import java_options
from adapt.traces.spark.connect import cloned, connected, is_remote
from adapt.traces.spark.executors import bring_packages, is_local, tagged_jobs, watch_executors
from adapt.traces.spark.java import find_java_home
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.python_facts import memory_bytes

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


Batches: TypeAlias = "Iterator[pa.RecordBatch]"
"""Rows on their way into a Spark task, or out of it."""

DECISIVE = {
    "spark.sql.ansi.enabled": "false",  # a bad cast gives null, hence a rejected row, not a failed job
    "spark.sql.caseSensitive": "true",  # columns that differ only in case are different columns
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",  # a damaged or missing file is an error, not fewer rows
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""Settings that results depend on, which `--spark-conf` does not change."""

SETTINGS = {
    **DECISIVE,
    "spark.app.name": "adapt",
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "true",  # parts of a trace keep their number, as Spark merges none that we ask for
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.localRelationThreshold": "4m",  # larger tables are worth compiling expressions for
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",  # not a task for each of thousands of files
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.hadoop.parquet.page.write-checksum.enabled": "true",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
}
"""Settings of every session, unless `--spark-conf` overrides one that is not decisive."""

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Settings of a local master: listen on this machine only."""

SMALL_BYTES = 64 << 20
"""The largest source for which Spark's Java need not compile well."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

SHARE_HELD = 4
"""Results of this process may take one part in this many of the memory; larger ones are left to Spark's tasks."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Spark master and settings."""

    # a Spark master (`local[*]`, `local-cluster[...]`, `spark://...`, `yarn`, `k8s://...`), or the address of a Spark
    # Connect server (`sc://HOST:PORT`); all cores of this machine if None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)  # Spark settings that go before ours
    # whether this process ends after little work, so that Spark's Java compiles quickly rather than well
    brief: bool = False
    runner: RunnerName = RunnerName.AUTO  # where work runs that both Spark and this process can do

    def for_work(self, *, small: bool) -> "SparkOptions":
        """The options for a piece of work.

        Only small work may be brief.
        """
        return replace(self, brief=self.brief and small)

    @property
    def url(self) -> str:
        """The master, all cores of this machine by default."""
        return self.master or "local[*]"

    @property
    def server(self) -> str | None:
        """The address of Spark Connect; without a master, that in SPARK_REMOTE too."""
        if self.master is None:
            return os.environ.get("SPARK_REMOTE") or None
        return self.master if self.master.startswith("sc:") else None

    @property
    def asked_for(self) -> bool:
        """Whether the user chose Spark: a master, a server or settings."""
        return self.master is not None or self.server is not None or bool(self.conf)

    def on_spark(self, *, small: bool) -> bool:
        """Whether work that this process could do runs on Spark."""
        if self.runner is RunnerName.AUTO:
            return self.asked_for or not small
        return self.runner is RunnerName.SPARK


def fit_here(rows: int) -> bool:
    """Whether this process may hold these rows of results."""
    return rows <= memory_bytes() // (SHARE_HELD * COPIES * TEXT_BYTES)


Spark: TypeAlias = SparkOptions | None
"""Spark options; None for all cores of this machine."""

_jvm_log: list[IO[bytes]] = []
"""The console of the Java process: at most one unnamed file, kept as Java outlives a session."""

_ours: list[str] = []
"""Spark applications started here, which have our settings."""


def spark_session(options: Spark = None, *, as_found: bool = False) -> "SparkSession":
    """The Spark session of this process, started on first use.

    A running Spark is used, wherever it runs. If its settings differ from those requested, the result is a second
    session on the same Spark, so the running one keeps its settings.

    Args:
        as_found: Whether executors are left without our packages, if they have none.
    """
    options = options or SparkOptions()
    options = replace(options, conf=_without_decisive(options.conf))
    running = _running()
    if running is not None:
        _watch_once(running)
        return _fitted(running, options.conf)
    session = _started(options) if options.server is None else _connected(options.server, options.conf)
    _watch_once(session)
    if not (as_found or (options.server is None and options.url.startswith("local"))):
        with spark_failures("starting tasks"):
            bring_packages(session)
    return session


def _watch_once(session: "SparkSession") -> None:
    """Watch the executors of a cluster from its first use on."""
    if is_remote() or is_local(session):
        return
    application = str(session.conf.get("spark.app.id"))
    if application not in _watched_over:
        _watched_over.add(application)
        watch_executors(session)


_watched_over: set[str] = set()
"""Spark applications whose executors are watched."""


def _without_decisive(conf: Mapping[str, str]) -> dict[str, str]:
    """Settings without those that would change results, which are named in a warning."""
    for name, value in conf.items():
        if DECISIVE.get(name, value) != value and (name, value) not in _warned:
            _warned.add((name, value))
            logging.getLogger(__name__).warning(
                "%s=%s is not used, as results would depend on it; it stays %s", name, value, DECISIVE[name]
            )
    return {name: value for name, value in conf.items() if name not in DECISIVE}


_warned: set[tuple[str, str]] = set()
"""Settings that were warned of."""


@contextmanager
def active_session_kept() -> Iterator[None]:
    """Keep the caller's active Spark session.

    PySpark makes each session that it uses the active one; not so with Spark Connect.
    """
    pyspark = sys.modules.get("pyspark.sql")
    active = None if pyspark is None or is_remote() else pyspark.SparkSession.getActiveSession()
    try:
        yield
    finally:
        if pyspark is not None and active is not None:
            pyspark.SparkSession._activeSession = active
            pyspark.SparkSession._get_j_spark_session_class(active._jvm).setActiveSession(active._jsparkSession)


def _running() -> "SparkSession | None":
    """The running session of this process, whoever started it."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    if is_remote():
        with suppress(PySparkRuntimeError):
            return SparkSession.active()
        return None
    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


def is_running() -> bool:
    """Whether this process has a Spark."""
    return _running() is not None


def started_here(spark: "SparkSession") -> bool:
    """Whether this program started this Spark, not its user."""
    return spark.conf.get("spark.app.id") in _ours


def shares_disk(options: SparkOptions) -> bool:
    """Whether tasks run on this machine, and so see its disk."""
    running = _running()
    if is_remote() or (running is None and options.server):
        return False
    return (options.url if running is None else str(running.conf.get("spark.master"))).startswith("local")


def _fitted(running: "SparkSession", conf: Mapping[str, str]) -> "SparkSession":
    """A session on the running Spark with these settings, on top of ours."""
    wanted = dict(conf) if started_here(running) else {**SETTINGS, **conf}
    differing = _changes(running, wanted, conf)
    return _beside(running, differing) if differing else running


def _changes(running: "SparkSession", wanted: Mapping[str, str], stated: Mapping[str, str]) -> dict[str, str]:
    """Wanted settings that differ; without those that cannot change, of which none may be stated."""
    held = running.conf.getAll
    if not is_remote():
        held = {**dict(running.sparkContext.getConf().getAll()), **held}
    differing = {name: value for name, value in wanted.items() if held.get(name) != value}
    fixed = [name for name in differing if not running.conf.isModifiable(name)]
    for name in fixed:
        if name in stated:
            now = redacted_word(f"{name}={held.get(name, 'the default')}").partition("=")[2]
            raise UsageError(
                f"{name} cannot change while Spark runs (now {now}); stop Spark first"
                " (spark.stop()), or omit the setting"
            )
        del differing[name]
    return differing


def _beside(spark: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
    """A second session on the same Spark, with its settings and these."""
    apart = cloned(spark) if is_remote() else spark.newSession()
    begins_with = apart.conf.getAll
    for name, value in {**spark.conf.getAll, **settings}.items():
        if begins_with.get(name) != value and apart.conf.isModifiable(name):
            apart.conf.set(name, value)
    return apart


def _connected(url: str, conf: Mapping[str, str]) -> "SparkSession":
    """A session of Spark Connect with our settings and these, where the server lets them change."""
    with spark_failures(f"connecting to {url}"):
        session = connected(url)
        for name, value in _changes(session, {**SETTINGS, **conf}, conf).items():
            session.conf.set(name, value)
        _ours.append(str(session.conf.get("spark.app.id")))
    _silence_query_log()
    return session


def _started(options: SparkOptions) -> "SparkSession":
    from pyspark.sql import SparkSession

    os.environ.pop("SPARK_REMOTE", None)  # PySpark would refuse a master beside it
    java_home = find_java_home()
    os.environ["JAVA_HOME"] = str(java_home)
    settings = {**SETTINGS, "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "adapt-warehouse")}
    settings["spark.executorEnv.PYTHONSAFEPATH"] = "1"  # tasks import nothing from the folder where they run
    if options.url.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= LOOPBACK
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the Python of a cluster may have another path
    _silence_query_log()
    builder = SparkSession.builder.master(options.url)
    ours = [java_options(java_home, brief=options.brief), options.conf.get(JAVA_OPTIONS, "")]
    for name, value in {**settings, **options.conf, JAVA_OPTIONS: " ".join(filter(None, ours))}.items():
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
        raise EnvironmentFailure(f"Spark did not start: {_why_not_started(error, written)}") from error
    _ours.append(str(session.conf.get("spark.app.id")))
    return session


def _silence_query_log() -> None:
    """Keep PySpark from printing the stack of a failed query besides our message."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def session_in_zone(spark: "SparkSession", time_zone: str) -> "SparkSession":
    """A second session on the same Spark in another time zone."""
    apart = _beside(spark, {})
    set_zone(apart, time_zone)
    return apart


def set_zone(spark: "SparkSession", time_zone: str) -> None:
    """Set the zone of times without one."""
    try:
        spark.conf.set("spark.sql.session.timeZone", time_zone)
    except Exception as error:
        raise UsageError(f"unknown time zone {time_zone!r}; use one such as UTC, Europe/Berlin or +02:00") from error


def literal_path(path: str | os.PathLike[str]) -> str:
    """A path with its glob characters escaped for Spark's readers."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", os.fspath(path))


@contextmanager
def spark_failures(doing: str) -> Iterator[None]:
    """Turn failures of Spark into one sentence that begins with the stage.

    Our own errors in a Spark task are raised unchanged.
    """
    try:
        with tagged_jobs():
            yield
    except AdaptError:
        raise
    except Exception as error:
        from py4j.protocol import Py4JError, Py4JNetworkError
        from pyspark.errors import PySparkException

        unanswered = type(error) is Py4JError and "An error occurred while calling" in str(error)
        if unanswered or isinstance(error, (ConnectionError, EOFError, Py4JNetworkError)):
            raise EnvironmentFailure(
                f"{doing}: Spark's Java process ended, possibly out of memory; give it more with --spark-conf"
                " spark.driver.memory=4g"
            ) from error
        lacking = _lacking(str(error))
        if lacking:
            raise EnvironmentFailure(f"{doing}: {lacking}") from error
        if not isinstance(error, (Py4JError, PySparkException)) or _is_bug(str(error)):
            raise
        told = translated(error, doing)
        if is_remote() and "No such file or directory" in str(told):
            told = EnvironmentFailure(
                f"{str(told).rstrip('.')}; tasks of the server must see it: use an object store, or a disk that both"
                " share"
            )
        raise told from error


def translated(error: Exception, doing: str) -> AdaptError:
    """A Spark exception as one of our errors."""
    from pyspark.errors import AnalysisException, ParseException

    text = str(error)
    carried = _CARRIED.search(text)
    cause = bytes.fromhex(carried.group(2)).decode() if carried else _root_cause(text)
    hidden = _hidden_from_executors(cause)
    if hidden:
        return EnvironmentFailure(
            f"{doing}: an executor cannot reach {hidden}, though this machine can; mount it on all machines at the same"
            " path, or use s3:// (`adapt cluster check` says which machines reach it)"
        )
    if carried:
        return _CARRIED_KINDS[carried.group(1)](cause)
    if isinstance(error, (AnalysisException, ParseException)):
        return UsageError(f"{doing}: {first_sentence(text)}")
    if "No space left on device" in text or "Disk quota exceeded" in text:
        free = shutil.disk_usage(tempfile.gettempdir()).free
        return EnvironmentFailure(
            f"{doing}: no space left on the disk ({free:,} bytes free in {tempfile.gettempdir()}, where Spark keeps "
            "temporary files); free some there or at the output, or point --spark-conf spark.local.dir elsewhere"
        )
    if "File too large" in text:
        return EnvironmentFailure(
            f"{doing}: a file reached the limit of this shell on file sizes; raise it (ulimit -f), run again"
        )
    unserved = _UNSERVED.search(text)
    if unserved:
        return EnvironmentFailure(f"{doing}: {unserved[0]}")
    if "of RPC that terminated with" in text:
        return EnvironmentFailure(f"{doing}: the Spark Connect server no longer answers; start it, and run this again")
    damaged = _DAMAGED.search(text)
    if damaged and "FileNotFoundException" not in text:
        path = unquote(re.sub("^file:/+", "/", damaged[1]))
        cause = _innermost(text)
        if why := _why_damaged(path) or (cause if _BROKEN.search(cause) else ""):
            return BadInput(f"{path} is damaged: {why}; get the file again")
        return BadInput(f"{path} cannot be read by Spark ({cause}); write it again with other settings, or as CSV")
    if "spark.driver.maxResultSize" in text:
        return EnvironmentFailure(
            f"{doing}: the results are larger than spark.driver.maxResultSize; raise it with --spark-conf"
            " spark.driver.maxResultSize=8g and spark.driver.memory=16g, or count keys by --method lossy"
        )
    if _LOST.search(text):
        return EnvironmentFailure(
            f"{doing}: an executor ended, or a Python worker of it ran out of memory; give it more with --spark-conf"
            " spark.executor.memory=4g and spark.executor.memoryOverhead=2g"
        )
    if any(sign in text for sign in ("OutOfMemoryError", "MEMORY_LIMIT", "SparkContext was shut down")):
        return EnvironmentFailure(f"{doing}: Spark ran out of memory; add --spark-conf spark.driver.memory=4g")
    return EnvironmentFailure(f"{doing}: Spark failed: {first_sentence(cause)}")


def _hidden_from_executors(cause: str) -> str:
    """A path of this machine that a task on another one did not find; empty if there is none."""
    if not _NOT_FOUND.search(cause) or not is_running() or shares_disk(SparkOptions()):
        return ""
    paths = [path.rstrip("/.") for path in _PATH.findall(cause)]
    known = (path if os.path.lexists(path) else os.path.dirname(path) for path in paths)
    return next(filter(os.path.lexists, known), "")


def carry_failures(error: Exception) -> Exception:
    """An error to raise in a Spark task that reaches the driver."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        error = EnvironmentFailure(f"the disk is full, writing {error.filename or 'a part'}; free space, run again")
    if isinstance(error, AdaptError):
        kind = next(name for name, kind in _CARRIED_KINDS.items() if isinstance(error, kind))
        return RuntimeError(f"adapt<{kind}:{str(error).encode('utf-8', 'replace').hex()}>")
    return error


def carrying(work: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """Task work with the driver's access to stores; errors return unchanged."""
    given = environment_of_stores()

    def run(batches: Batches) -> Batches:
        try:
            take_environment(given)
            yield from work(batches)
        except Exception as error:
            raise carry_failures(error) from error

    return run


_CARRIED_KINDS: dict[str, type[AdaptError]] = {
    kind.__name__: kind for kind in (BadInput, EnvironmentFailure, UsageError, AdaptError)
}
_CARRIED = re.compile(rf"adapt<({'|'.join(_CARRIED_KINDS)}):((?:[0-9a-f]{{2}})*)>")


_NOT_FOUND = re.compile(r"\[Errno (2|13)\]|No such file|Permission denied|does not exist|Mkdirs failed")
_PATH = re.compile(r"(?<![\w/.])(?:file:/*(?=/))?(/[^\s'\":;,()/]+/[^\s'\":;,()]+)")
_LOST = re.compile("ExecutorLostFailure|(?<!Of)MemoryError|Cannot allocate memory|failed to map segment")
"""What Spark and Python say of executors without memory."""

_UNSERVED = re.compile(r"no executor for .* with \S+=\d+min")
"""Why `watch_executors` cancels a job."""

_DAMAGED = re.compile(r"\[FAILED_READ_FILE\.\w+\] Encountered error while reading file (\S+?)\.(?:\s|$)")
"""Spark's message about a file that it cannot decode."""


_BROKEN = re.compile("UNCOMPRESS|decompress|corrupt|checksum|CRC|EOF|magic number|PageHeader", re.IGNORECASE)
"""What decoders say of bytes that no writer wrote."""


def _innermost(text: str) -> str:
    """The innermost cause of a failure, with its class where that is all that is known."""
    causes = re.findall(r"^Caused by: (?:[\w$]+\.)*([\w$]+)(?:: ([^\n]*\S))?", text, re.MULTILINE)
    return ": ".join(filter(None, causes[-1])) if causes else first_sentence(_root_cause(text))


def _why_damaged(path: str) -> str:
    """What is wrong with a Parquet or ORC file that no other reader can read either; empty for others."""
    import pyarrow as pa
    import pyarrow.orc as orc
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as file:
            start = file.read(4)
        if start == b"PAR1":
            with pq.ParquetFile(path) as table:
                for _ in table.iter_batches():
                    pass
        elif start[:3] == b"ORC":
            stripes = orc.ORCFile(path)
            for at in range(stripes.nstripes):
                stripes.read_stripe(at)
        else:
            return f"it begins with {start!r}, which is neither Parquet nor ORC"
    except (FileNotFoundError, pa.ArrowNotImplementedError):  # gone, or of a kind that Arrow does not read either way
        return ""
    except (OSError, pa.ArrowException) as error:
        return str(error).splitlines()[0].rstrip(".")
    return ""


def _is_bug(text: str) -> bool:
    """Whether our Python code failed in a task with an error that is neither ours nor the machine's."""
    failed = _PYTHON_FAILURE.search(text.split("JVM stacktrace")[0])
    if failed is None or _CARRIED.search(text) or _LOST.search(text):
        return False
    return not issubclass(getattr(builtins, failed[1].split(":")[0], Exception), (OSError, MemoryError))


def _lacking(text: str) -> str:
    """What the Python of the executors lacks, with the remedy; empty if nothing."""
    other = re.search(r"Python in worker has different version: (\S+) than that in driver: (\d+\.\d+)", text)
    if other:
        theirs, ours = other.groups()
        return f"the executors run Python {theirs}, this process {ours}; set PYSPARK_PYTHON to their Python {ours}"
    absent = re.search(r"ModuleNotFoundError: No module named '(adapt|numba|numpy|pandas|pyarrow)'", text)
    if absent:
        return (
            f"the Python of the executors has no {absent[1]}; install adapt-streams there, or set PYSPARK_PYTHON to a"
            " Python that has it"
        )
    return ""


_PYTHON_FAILURE = re.compile(r"Traceback \(most recent call last\):\n(?:\s.*\n|\n)*(\w\S*.*)")
"""The end of a Python traceback."""


def first_sentence(text: str) -> str:
    """Spark's message without error class, SQL state, plan and stack."""
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
    """Spark's own reason, else the first error on Java's console."""
    little = re.search(r"(Executor|System) memory (\d+) must be at least (\d+)", str(error))
    if little:
        setting = f"spark.{'executor' if little[1] == 'Executor' else 'driver'}.memory"
        given, least = (-(-int(size) >> 20) for size in little.groups()[1:])
        return f"{setting} is {given} MB, but Spark needs {least}; set it to 1g, as with --spark-conf {setting}=1g"
    caused = _root_cause(str(error))
    if caused != str(error):
        return first_sentence(caused)
    errors = [line.strip() for line in console.splitlines() if re.search(r"Error|Exception|error", line)]
    return (errors or [first_sentence(str(error))])[0]


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Restore a custom Ctrl-C handler, which PySpark replaces when it starts."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if callable(handler) and handler is not signal.default_int_handler:
            with suppress(ValueError):  # only the main thread handles signals
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


_LOG = logging.getLogger(__name__)

TEXT_BYTES = 40
"""Bytes of a text or binary value in a result, with its offset: keys of about 32 bytes."""

COPIES = 4
"""Copies of a result while it is read and put in order, with the index of its keys."""

RESULT_SETTING, RESULT_BYTES = "spark.driver.maxResultSize", "1g"
"""The setting that limits a result, and its default."""

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def result_bytes(rows: int, schema: str) -> int:
    """Bytes of a result of Spark tasks.

    Args:
        rows: The most rows of the result.
        schema: Their Spark schema, as `name type, name type`.
    """
    kinds = [column.split()[-1] for column in schema.split(",")]
    return rows * sum(TEXT_BYTES if kind in ("string", "binary") else 8 for kind in kinds)


def held_bytes(rows: int, schema: str) -> int:
    """Memory that a result takes here, at most; arguments as in `result_bytes`."""
    return COPIES * result_bytes(rows, schema)


def check_held(doing: str, rows: int, schema: str, limit: str) -> None:
    """Log what this process will hold, before the work starts.

    Args:
        doing: The work, such as "counting keys".
        limit: The value of `RESULT_SETTING`.
    """
    size = result_bytes(rows, schema)
    _LOG.info("%s: this process holds at most %s rows, %s", doing, f"{rows:,}", shown(held_bytes(rows, schema)))
    most = _bytes_of(limit)
    if most and size > most:
        raise EnvironmentFailure(
            f"{doing}: {rows:,} rows would come to this process, {shown(size)}, above {RESULT_SETTING} ({limit});"
            f" count fewer keys (a larger --epsilon), or add --spark-conf {RESULT_SETTING}={-(-size >> 30) + 1}g"
        )


def shown(size: int) -> str:
    """Bytes for people, in MB."""
    return f"{-(-size // 10**6):,} MB"


def _bytes_of(text: str) -> int:
    """A size as Spark writes it; 0 for no limit."""
    found = re.fullmatch(r"\s*(\d+)\s*([bkmgt]?)b?\s*", text.lower())
    return int(found[1]) * _UNITS[found[2]] if found else 0
