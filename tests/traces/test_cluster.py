"""What a check of a cluster finds, on the Spark of this machine with the Pythons of others."""

import json
import os
from dataclasses import asdict, replace
from threading import Event

import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.traces import reach
from adapt.traces.spark import executors, session
from adapt.traces.spark.executors import bring_packages, here
from adapt.traces.spark.packages import FOLDER
from tests.journeys.processes import standalone, started
from tests.tiers import soak


@pytest.fixture
def python_of(spark, tmp_path, monkeypatch):
    """Lets executors have a Python that says this of itself, or none."""

    def put(**said):
        program = tmp_path / "python"
        if said:
            program.write_text(f"#!/bin/sh\ncat << END\n{json.dumps(asdict(replace(here(), **said)))}\nEND\n")
            program.chmod(0o755)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(program))
        return str(program)

    return put


def test_executors_of_this_machine_have_all_and_reach_disk_and_store(adapt, spark, tmp_path, bucket):
    (tmp_path / "a.csv").write_text("x")
    places = (tmp_path, tmp_path / "a.csv", f"{bucket}new.trace")
    said = adapt.done("cluster", "check", "--master", "local[2]", *places, "--format", "json")
    found = json.loads(said.out)
    assert [each["adapt"] for each in found["executors"]] == [here().adapt]
    assert [(each["read"], each["write"]) for each in found["locations"]] == [
        ("yes", "yes"),
        ("yes", ""),
        ("yes", "yes"),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv"}
    assert list(bucket.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "missing", "remedy"),
    [
        ({}, "has no Python that runs as", "set PYSPARK_PYTHON to a Python 3.11 of the executors"),
        ({"python": "3.9.1"}, "runs Python 3.9.1, this process 3.11.", "set PYSPARK_PYTHON to a Python 3.11"),
        ({"adapt": "00000000", "platform": "linux arm64"}, "lacks adapt, and is linux arm64", "install adapt-streams"),
        ({"memory": 1 << 30}, "has 1,024 MB of memory, but its executors need", "lower spark.executor.memory"),
        ({"adapt": "00000000"}, "spark.archives: the packages in", "pack them again with `adapt cluster pack`"),
    ],
)
def test_what_is_missing_comes_with_its_remedy(adapt, spark, python_of, monkeypatch, said, missing, remedy):
    python_of(**said)
    given_conf(spark, monkeypatch)
    found = adapt("cluster", "check", "--master", "local[2]", "--format", "json")
    assert found.code == 4
    (only,) = json.loads(found.out)["missing"]
    assert only["missing"].startswith(missing)
    assert only["remedy"].startswith(remedy)


def given_conf(spark, monkeypatch):
    """Spark with an archive of ours."""
    conf = spark.sparkContext.getConf().set("spark.archives", f"env.tar.gz#{FOLDER}")
    monkeypatch.setattr(spark.sparkContext, "getConf", lambda: conf)
    monkeypatch.setattr(spark.sparkContext, "environment", dict(spark.sparkContext.environment))


def test_a_command_refuses_executors_without_a_python_that_fits(spark, python_of):
    program = python_of()
    with pytest.raises(EnvironmentFailure, match=f"^executor .* has no Python that runs as {program}; set PYSPARK"):
        bring_packages(spark)
    python_of(python="3.12.1")
    with pytest.raises(EnvironmentFailure, match=r"^executor .* runs Python 3.12.1, this process 3.11"):
        bring_packages(spark)


def test_python_workers_need_their_address_space(spark, monkeypatch):
    found = [here()]
    bring_packages(spark, found)
    monkeypatch.setattr(executors, "WORKER_ADDRESS_MB", 1 << 40)
    bring_packages(spark, found)
    conf = spark.sparkContext._jsc.sc().conf().clone().set("spark.executor.pyspark.memory", "300m")
    monkeypatch.setattr(executors, "_java_conf", lambda _: conf)
    with pytest.raises(EnvironmentFailure, match=r"^spark.executor.pyspark.memory is 300 MB, but .* set it to"):
        bring_packages(spark, found)


def test_a_job_without_executors_ends(spark):
    over = Event()
    executors.watch_executors(spark, 0.3, over)  # a local Spark has none
    try:
        with (
            pytest.raises(
                EnvironmentFailure, match=r"^counting: no executor for 0.3 s: local.* start one, ask for less,"
            ),
            session.spark_failures("counting"),
        ):
            spark.range(0, 1, 1, 1).selectExpr("java_method('java.lang.Thread', 'sleep', 2000L + id)").collect()
    finally:
        over.set()


def test_a_job_of_others_waits_on(spark):
    over = Event()
    executors.watch_executors(spark, 0.3, over)
    try:
        spark.range(0, 1, 1, 1).selectExpr("java_method('java.lang.Thread', 'sleep', 1000L + id)").collect()
        with session.spark_failures("counting"):
            assert executors.JOB_TAG in spark.sparkContext.getJobTags()
        assert executors.JOB_TAG not in spark.sparkContext.getJobTags()
    finally:
        over.set()


@pytest.mark.parametrize(
    ("java", "sentence"),
    [
        ("Executor memory 104857600 must be at least 471859200. Please", "spark.executor.memory is 100 MB, but Spark"),
        (
            "System memory 259522560 must be at least 471859200. Please",
            "spark.driver.memory is 248 MB, but Spark needs",
        ),
    ],
)
def test_too_little_memory_to_start_is_said_with_its_setting(java, sentence):
    assert session._why_not_started(ValueError(java), "").startswith(sentence)


def test_another_disk_at_the_same_path_is_told_apart(tmp_path):
    (tmp_path / "mark").write_bytes(b"theirs")
    assert reach._tried(reach._Mark(tmp_path / "mark", b"ours"), "x")["read"] == "another disk than here"
    assert reach._tried(reach._Mark(tmp_path / "gone", b"ours"), "x")["read"] == "No such file or directory"


@soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can unmount a folder for others")
def test_a_disk_that_executors_do_not_mount_is_one_sentence(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("ts,key\n1700000000,a\n1700000001,b\n")
    line = ["ingest", tmp_path / "data" / "a.csv", "--key", "key", "--time", "ts", "-o", tmp_path / "a.trace"]
    with standalone(tmp_path, unmounted=tmp_path / "data") as master:
        run = started([*line, "--master", master])
        said = run.communicate()[1]
    assert run.returncode == 4
    assert f"an executor cannot reach {tmp_path / 'data' / 'a.csv'}, though this machine can" in said
