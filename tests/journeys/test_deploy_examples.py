"""The examples of deployed plans, run as they stand: what they place lies where the plan says."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from adapt.traces.store.disk import remove_tree
from examples import broker
from tests.tiers import SOAK, soak

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
FOLLOWED = "predicted equals actual on every partition"
CLUSTER = "local-cluster[2,1,1024]"
needs_a_compiler = pytest.mark.skipif(
    shutil.which("javac") is None, reason="no javac on PATH: the exported Java classes need a JDK, 17 or later"
)


def example(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))  # as where a script is started
    return runpy.run_path(str(EXAMPLES / name))


def test_every_record_lies_on_the_partition_that_the_plan_says(capsys, monkeypatch):
    assert example("kafka_router.py", monkeypatch)["main"]() == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "10,000 records came back, 0 of them from another partition than planned"


def test_nothing_is_lost_doubled_or_reordered_while_a_producer_plans_anew(capsys, monkeypatch):
    if not broker.is_there():
        pytest.skip(broker.MISSING)
    records = "1000000" if SOAK else "20000"
    assert example("kafka_replan.py", monkeypatch)["main"](records, "10") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "records out of order, lost or doubled: 0; keys with another count: 0"


@pytest.mark.parametrize("way", ["drain", "rolling"] if SOAK else ["rolling"])
def test_order_per_key_holds_while_producers_go_over_to_a_rekey_table_and_back(way, capsys, monkeypatch):
    if not broker.is_there():
        pytest.skip(broker.MISSING)
    records = "1000000" if SOAK else "9000"
    assert example("kafka_rekey.py", monkeypatch)["main"](records, way) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"{way}: records out of order, lost or doubled: 0; keys with another count: 0"


def test_a_consumer_that_does_not_wait_for_state_is_noticed(capsys, monkeypatch):
    if not broker.is_there():
        pytest.skip(broker.MISSING)
    run = example("kafka_rekey.py", monkeypatch)

    def record(worker, key, phase, producer, number):
        worker.count(key, producer, number)

    monkeypatch.setattr(run["Worker"], "record", record)
    assert run["main"]("3000", "rolling") == 1


def test_rows_of_a_batch_job_lie_where_the_plan_foresaw(spark, tmp_path, capsys, monkeypatch):
    assert example("spark_batch.py", monkeypatch)["job"](spark.newSession(), tmp_path)
    assert capsys.readouterr().out.splitlines()[-1] == FOLLOWED


@soak
def test_state_of_a_stream_lies_where_the_plan_foresaw_before_and_after_a_restart(spark, tmp_path, capsys, monkeypatch):
    assert example("spark_streaming.py", monkeypatch)["job"](spark.newSession(), tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "2 batches; counts of all users correct: True"
    assert said[-1] == FOLLOWED


@soak
def test_a_batch_and_a_stream_of_spark_are_rekeyed_and_a_checkpoint_goes_on(spark, tmp_path, capsys, monkeypatch):
    assert example("spark_rekey.py", monkeypatch)["job"](spark.newSession(), tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert said.count(FOLLOWED) == 2
    assert "batch: counts of all users correct: True" in said
    assert said[-1].endswith("counts of all users correct: True")


@needs_a_compiler
def test_exported_classes_give_the_hash_codes_that_flink_takes_to_the_plan_s_subtasks(capsys, monkeypatch):
    assert example("flink_job.py", monkeypatch)["main"]("") == 0
    said = capsys.readouterr().out.splitlines()
    assert said.count("predicted equals actual on every subtask") == 2  # at the plan's parallelism, and rescaled


@needs_a_compiler
def test_state_of_a_flink_job_lies_where_the_plan_foresaw_also_when_it_is_rescaled(flink_jar, capsys, monkeypatch):
    assert example("flink_job.py", monkeypatch)["main"](str(flink_jar)) == 0
    said = capsys.readouterr().out.splitlines()
    assert said.count("predicted equals actual on every subtask") == 5
    assert said.count("counts of all users correct: True") == 2
    assert said[-1] == "10,000 rows under 4 broadcast plans, each where its plan says: True"


@soak
@needs_a_compiler
def test_a_flink_job_is_rekeyed_from_a_savepoint_and_taken_back_with_all_its_state(flink_jar, capsys, monkeypatch):
    assert example("flink_rekey.py", monkeypatch)["main"](str(flink_jar)) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[2] == "rekeyed: every key, pinned ones too, counts on from where it was: True"
    assert said[-3] == "predicted equals actual on every subtask"
    assert said[-2] == "rekeyed: counts of all users, split keys merged, correct: True"
    assert said[-1].endswith("correct: True")


@soak
@needs_a_compiler
def test_java_and_adapt_route_alike():
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    script = [str(EXAMPLES / "java" / "route.sh")]
    told = subprocess.run(script, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path})
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1] == "Java and adapt agree"


@soak
@pytest.mark.parametrize("name", ["spark_batch.py", "spark_streaming.py"])
def test_on_a_cluster_too(name):
    work = Path(pyspark.__file__).parent / "work"  # where the cluster's workers write
    before = set(work.iterdir()) if work.exists() else None
    told = subprocess.run([sys.executable, str(EXAMPLES / name), CLUSTER], capture_output=True, text=True, check=False)
    for left in set(work.iterdir()) - (before or set()) if work.exists() else ():
        remove_tree(left)
    if before is None and work.exists():
        work.rmdir()
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1] == FOLLOWED
