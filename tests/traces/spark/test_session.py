"""The Spark session, its failures in one sentence, and results held here."""

import errno
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PythonException

import adapt
from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, UsageError
from adapt.core.stream import KeyType, Weight
from adapt.traces.counting import lossy as lossily
from adapt.traces.counting.exact import count_exactly, measure_columns
from adapt.traces.counting.lossy import count_lossy
from adapt.traces.spark import runner, session
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.progress import watched
from adapt.traces.spark.runner import LEAST_TASKS, TASK_BYTES, TASK_FILES, TASK_ITEMS, grouped, in_tasks, shared_out
from adapt.traces.spark.session import (
    LOOPBACK,
    SETTINGS,
    SparkOptions,
    carry_failures,
    check_held,
    first_sentence,
    held_bytes,
    literal_path,
    result_bytes,
    session_in_zone,
    shown,
    spark_failures,
    spark_session,
    translated,
)
from tests.conftest import REPOSITORY
from tests.traces.small_traces import write_trace


def test_settings_are_as_listed(spark):
    held = {**dict(spark.sparkContext.getConf().getAll()), **spark.conf.getAll}
    assert {name: held.get(name) for name in {**SETTINGS, **LOOPBACK}} == {**SETTINGS, **LOOPBACK}
    assert SETTINGS["spark.ui.enabled"] == SETTINGS["spark.sql.ansi.enabled"] == "false"
    assert SETTINGS["spark.sql.session.timeZone"] == "UTC"
    assert SETTINGS["spark.sql.caseSensitive"] == "true"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_workers_have_the_package(spark):
    def version_of(batches):
        import adapt  # in the worker

        for _ in batches:
            yield pa.RecordBatch.from_pylist([{"version": adapt.__version__, "built": adapt.build.__name__}])

    (row,) = spark.range(1).mapInArrow(version_of, "version string, built string").collect()
    assert (row.version, row.built) == (adapt.__version__, "build")


def test_another_thread_finds_the_same_session(spark):
    found = []
    thread = threading.Thread(target=lambda: found.append(spark_session()))
    thread.start()
    thread.join()
    assert found == [spark]


def test_settings_of_one_call_are_not_those_of_the_next(spark):
    apart = spark_session(
        SparkOptions(conf={"spark.sql.shuffle.partitions": "3", "spark.sql.files.maxPartitionBytes": "1m"})
    )
    assert apart.conf.get("spark.sql.shuffle.partitions") == "3"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "8"
    assert spark_session() is spark
    in_zone = session_in_zone(apart, "+02:00")
    assert in_zone.conf.get("spark.sql.shuffle.partitions") == "3"
    assert in_zone.conf.get("spark.sql.files.maxPartitionBytes") == "1m"


def test_a_setting_that_a_running_spark_cannot_change_is_refused(spark):
    with pytest.raises(UsageError, match=r"spark.driver.memory cannot change while Spark runs \(now 2g\)"):
        spark_session(SparkOptions(conf={"spark.driver.memory": "3g"}))
    assert spark_session(SparkOptions(conf={"spark.driver.memory": "2g"})) is spark


def test_a_session_started_by_others_keeps_its_rules_and_ours_has_ours(spark, monkeypatch):
    monkeypatch.setattr("adapt.traces.spark.session._ours", [])
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.caseSensitive", "false")
    try:
        ours = spark_session()
        assert (ours.conf.get("spark.sql.ansi.enabled"), ours.conf.get("spark.sql.caseSensitive")) == ("false", "true")
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")
        spark.conf.set("spark.sql.caseSensitive", "true")


def test_a_setting_that_would_change_results_is_named_and_not_used(spark, caplog, monkeypatch):
    monkeypatch.setattr("adapt.traces.spark.session._warned", set())
    for _ in range(2):
        assert spark_session(SparkOptions(conf={"spark.sql.ansi.enabled": "true"})) is spark
    assert caplog.messages == ["spark.sql.ansi.enabled=true is not used, as results would depend on it; it stays false"]


@pytest.mark.parametrize("zone", ["Mars", "", "+25:00", "Europe/"])
def test_an_unknown_zone_is_refused_with_an_example(spark, zone):
    with pytest.raises(UsageError, match=r"unknown time zone '.*'; use one such as UTC, Europe/Berlin"):
        session_in_zone(spark, zone)


@pytest.mark.parametrize("name", ["a b", "a[1]", "a{x,y}", "a*", "a?b", "a\\b", "a:b", "k=1", "a%20b"])
def test_spark_reads_the_path_that_is_meant(spark, tmp_path, name):
    target = tmp_path / name / "data"
    spark.range(5).coalesce(1).write.parquet(str(target))
    assert target.is_dir()
    assert spark.read.schema("id long").parquet(literal_path(target)).count() == 5


def told(spark, query: str) -> AdaptError:
    with pytest.raises(AdaptError) as failure, spark_failures("--key 'x'"):
        spark.sql(query).collect()
    assert "\n" not in str(failure.value)
    return failure.value


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("select nope from range(3)", "with name `nope` cannot be resolved"),
        ("select 1 +", "Syntax error at or near end of input"),
        ("select * from nowhere", "The table or view `nowhere` cannot be found"),
        ("select no_such(1)", "Cannot resolve routine `no_such`"),
    ],
)
def test_what_cannot_be_evaluated_is_wrong_usage_in_one_sentence(spark, query, sentence):
    failure = told(spark, query)
    assert isinstance(failure, UsageError)
    assert str(failure).startswith("--key 'x': ")
    assert sentence in str(failure)
    assert "SQLSTATE" not in str(failure)


@pytest.mark.parametrize("kind", [BadInput, EnvironmentFailure, UsageError])
def test_a_failure_of_ours_in_a_task_arrives_as_itself(spark, kind):
    def work(_number: int) -> Iterator[pa.RecordBatch]:
        raise kind("the file ‘ü’ is\ndamaged")
        yield

    with pytest.raises(kind) as failure, spark_failures("reading"):
        in_tasks(spark, [[0]], work, "n int").collect()
    assert type(failure.value) is kind
    assert str(failure.value) == "the file ‘ü’ is\ndamaged"


def test_a_full_disk_in_a_task_is_a_failure_of_the_environment(spark):
    def work(_number: int) -> Iterator[pa.RecordBatch]:
        raise OSError(errno.ENOSPC, "No space left on device", "/data/part")
        yield

    with (
        pytest.raises(EnvironmentFailure, match="the disk is full, writing /data/part"),
        spark_failures("reading"),
    ):
        in_tasks(spark, [[0]], work, "n int").collect()


def test_a_file_that_fails_in_a_task_is_told_in_one_sentence(spark):
    def work(_number: int) -> Iterator[pa.RecordBatch]:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/gone.csv")
        yield

    with pytest.raises(EnvironmentFailure) as failure, spark_failures("reading"):
        in_tasks(spark, [[0]], work, "n int").collect()
    assert str(failure.value).startswith("reading: Spark failed: FileNotFoundError")
    assert "/gone.csv" in str(failure.value)


def test_a_bug_in_a_task_stays_a_bug(spark):
    from pyspark.errors import PythonException

    def work(_number: int) -> Iterator[pa.RecordBatch]:
        raise KeyError("a bug")
        yield

    with pytest.raises(PythonException, match="a bug"), spark_failures("reading"):
        in_tasks(spark, [[0]], work, "n int").collect()


@pytest.mark.parametrize("kind", [ConnectionRefusedError, ConnectionResetError, EOFError])
def test_java_that_has_gone_is_told_so(kind):
    with (
        pytest.raises(EnvironmentFailure, match="counting: Spark's Java process ended"),
        spark_failures("counting"),
    ):
        raise kind


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("java.io.IOException: No space left on device", "no space left on the disk"),
        ("java.io.IOException: File too large", "raise it (ulimit -f)"),
        ("java.io.IOException: Disk quota exceeded", "no space left on the disk"),
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "ran out of memory; add --spark-conf spark.driver.memory",
        ),
        (
            "Total size of serialized results of 8 tasks (1024.3 MiB) is bigger than spark.driver.maxResultSize",
            "raise it with --spark-conf spark.driver.maxResultSize=8g",
        ),
    ],
)
def test_want_of_room_names_its_remedy(text, sentence):
    failure = translated(RuntimeError(f"Job aborted\nCaused by: {text}\n\tat java.base"), "sorting")
    assert isinstance(failure, EnvironmentFailure)
    assert failure.exit_code == 4
    assert str(failure).startswith("sorting: ")
    assert sentence in str(failure)


@pytest.mark.parametrize("kind", [BadInput, OSError])
def test_a_path_that_only_this_machine_has_is_no_damage(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(session, "is_running", lambda: True)
    monkeypatch.setattr(session, "shares_disk", lambda _: False)
    part = tmp_path / "part-00000.parquet"
    part.touch()
    for path in (part, tmp_path / "absent.parquet"):
        raised = carry_failures(kind(f"{path} is damaged: [Errno 2] No such file or directory: '{path}'"))
        failure = translated(raised, "counting")
        known = part if path == part else tmp_path
        assert str(failure).startswith(f"counting: an executor cannot reach {known}, though this machine can; mount it")
        assert failure.exit_code == 4
    absent = translated(carry_failures(BadInput("/no/such/a.csv: No such file or directory")), "counting")
    assert isinstance(absent, BadInput)


@pytest.mark.parametrize(
    "text",
    [
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: exit code 137",
        "Traceback (most recent call last):\n  File 'x'\nImportError: x.so: failed to map segment from shared object",
        "Traceback (most recent call last):\n  File 'x'\nMemoryError",
    ],
)
def test_an_executor_without_memory_is_no_bug(text):
    with (
        pytest.raises(EnvironmentFailure, match=r"^sorting: an executor ended, or .* spark.executor.memory=4g"),
        spark_failures("sorting"),
    ):
        raise PythonException(text)


def test_a_sentence_has_no_class_state_position_or_stack():
    text = "[BROKEN.SUB] It broke. SQLSTATE: 42703; line 1 pos 7;\n'Project\nJVM stacktrace:\norg.apache"
    assert first_sentence(text) == "It broke"


def test_progress_is_told_and_ends_with_its_body(spark):
    heard = []
    with watched(spark, "counting", lambda *told: heard.append(told), every_s=0.001):
        assert spark.range(0, 1000, 1, 8).repartition(4).count() == 1000
    before = list(heard)
    spark.range(10).count()
    assert heard == before
    assert heard[0] == ("counting", 0, 0)
    assert all(what == "counting" and 0 <= done <= total for what, done, total in heard)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("ModuleNotFoundError: No module named 'adapt'", "counting: the Python of the executors has no adapt; install"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark",
            "counting: the executors run Python 3.12, this process 3.11; set PYSPARK_PYTHON to their Python 3.11",
        ),
    ],
)
def test_what_the_python_of_executors_lacks_is_no_bug(told, said):
    with pytest.raises(EnvironmentFailure, match=f"^{re.escape(said)}"), spark_failures("counting"):
        raise PythonException(f"Traceback (most recent call last):\n  File 'x'\n{told}")


@given(st.lists(st.integers(0, 2 * TASK_BYTES), max_size=600))
def test_neighbors_share_a_task_up_to_a_size_and_a_count(sizes):
    groups = grouped(range(len(sizes)), sizes)
    assert [item for group in groups for item in group] == list(range(len(sizes)))
    for group in groups:
        assert 1 <= len(group) <= TASK_FILES
        assert len(group) == 1 or sum(sizes[item] for item in group) <= TASK_BYTES


def test_many_tiny_files_are_several_tasks():
    assert list(map(len, grouped(range(600), [1] * 600))) == [TASK_FILES, TASK_FILES, 600 - 2 * TASK_FILES]


@given(items=st.integers(1, 5_000), cores=st.integers(1, 99))
def test_tasks_of_a_cluster_depend_on_the_items_alone(items, cores):
    def groups(master):
        conf = SimpleNamespace(get=lambda *_: master)
        return shared_out(SimpleNamespace(conf=conf, sparkContext=SimpleNamespace(defaultParallelism=cores)), items)

    assert groups("spark://h:7077") == groups(f"local[{LEAST_TASKS}]") or cores != LEAST_TASKS
    tasks = groups("yarn")
    assert [item for task in tasks for item in task] == list(range(items))
    assert len(tasks) >= min(items, LEAST_TASKS)
    assert max(map(len, tasks)) <= TASK_ITEMS
    assert len(groups("local[*]")) <= max(cores, -(-items // TASK_ITEMS) + cores)


def test_a_result_is_its_rows_times_its_columns():
    assert result_bytes(10**8, "key bigint, block bigint, count bigint") == 24 * 10**8
    assert result_bytes(10, "key string, count double") == 480
    assert held_bytes(10, "key string, count double") == session.COPIES * 480


def test_a_result_above_the_limit_is_refused_with_its_size(caplog):
    with caplog.at_level(logging.INFO):
        check_held("counting keys", 10**6, "key string, count bigint", "1g")
    assert caplog.messages == ["counting keys: this process holds at most 1,000,000 rows, 192 MB"]
    said = r"100,000,000 rows would come to this process, 4,800 MB, above spark.driver.maxResultSize \(1g\); .*=6g$"
    with pytest.raises(EnvironmentFailure, match=said):
        check_held("counting keys", 10**8, "key string, count bigint", "1g")
    check_held("counting keys", 10**8, "key string, count bigint", "0")


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_no_result_is_larger_than_announced(spark, tmp_path, monkeypatch, kind):
    told, found = [], []
    monkeypatch.setattr(runner, "check_held", lambda _, rows, schema, limit: told.append(result_bytes(rows, schema)))
    to_table = runner.SparkRunner._run

    def run(self, asked, then):
        table = to_table(self, asked, then)
        found.append(table.nbytes)
        return table

    monkeypatch.setattr(runner.SparkRunner, "_run", run)
    keys = pa.array(np.random.default_rng(3).zipf(1.3, 5_000) % 900, pa.int64())
    if kind == pa.string():
        keys = pa.array([f"{key:032d}" for key in keys.to_pylist()])
    rows = {"ts": range(5_000), "key": keys, "bytes": pa.array(range(5_000), pa.int64())}
    trace, options = write_trace(tmp_path / "t.trace", rows), SparkOptions(runner=RunnerName.SPARK)
    counted = count_exactly(trace, spark_options=options)
    count_lossy(trace, 0.01, spark_options=options)
    measure_columns(trace, counted.keys, ["bytes"], spark_options=options)
    assert len(told) == len(found) == 3
    assert all(size <= most for size, most in zip(found, told, strict=True))


def test_the_documentation_has_this_number():
    """10^9 rows are 954 blocks, and lossy counting lists at most 2/epsilon keys."""
    page = (REPOSITORY / "docs" / "command-line.md").read_text()
    assert shown(held_bytes(954 + 200_001, lossily._schema(KeyType.STRING, Weight.COUNT))) in page
