"""Java started ahead: PySpark connects to it, and starts its own where that did not work."""

import os
import subprocess
import sys

import pytest

from adapt.traces.spark import early_java, session
from adapt.traces.spark.early_java import GATEWAY, EarlyJava
from adapt.traces.spark.session import JAVA_OPTIONS, SparkOptions, start_early

TELLS = """
import os, struct, sys
path = os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"]
with open(path + "~", "wb") as file:
    file.write(struct.pack("!ii", 4321, 6) + b"secret")
os.rename(path + "~", path)
sys.stdin.read()
"""


def started(tmp_path, program):
    """A process in place of Java."""
    connection = tmp_path / "java" / "connection"
    connection.parent.mkdir()
    environment = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection)}
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, env=environment)
    return EarlyJava(process, connection)


def test_pyspark_is_told_how_to_connect_and_nothing_stays(tmp_path):
    java = started(tmp_path, TELLS)
    with java.connected():
        assert [os.environ[name] for name in GATEWAY] == ["4321", "secret"]
    assert not set(GATEWAY) & set(os.environ)
    assert not list(tmp_path.iterdir())
    java.drop()
    assert java.process.wait(60) == 0


def test_of_a_java_that_ends_nothing_is_told(tmp_path):
    with started(tmp_path, "raise SystemExit(1)").connected():
        assert not set(GATEWAY) & set(os.environ)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def begun(monkeypatch):
    """What was started ahead; PySpark counts as not yet loaded."""
    monkeypatch.setattr(session, "_early", [])
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setattr(session, "start_early", start_early)
    monkeypatch.setattr(early_java.EarlyJava, "start", classmethod(lambda *_: "a process"))
    return session._early


@pytest.mark.parametrize(
    ("archive", "process"),
    [
        ("-XX:SharedArchiveFile=a.jsa", "a process"),
        ("-XX:SharedArchiveFile=b -XX:ArchiveClassesAtExit=c", None),
        ("", None),
    ],
)
def test_java_starts_early_only_from_a_finished_archive(begun, monkeypatch, archive, process):
    monkeypatch.setattr(session, "_settings", lambda _: {JAVA_OPTIONS: archive})
    start_early(SparkOptions())
    assert begun == [(SparkOptions(), {JAVA_OPTIONS: archive}, process)]
    start_early(SparkOptions())
    assert len(begun) == 1


def test_without_java_the_session_tells_why(begun, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    start_early(SparkOptions())
    assert begun == []


@pytest.mark.parametrize("name", [*GATEWAY, "SPARK_HOME", "PYSPARK_SUBMIT_ARGS"])
def test_whoever_starts_spark_in_a_way_of_their_own_keeps_it(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert EarlyJava.start({}, 2) is None
