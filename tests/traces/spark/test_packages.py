"""The archive of packages for Spark tasks."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import py4j
import pyspark
import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.traces.spark import packages
from adapt.traces.spark.packages import pack, packed_once
from adapt.traces.store.manifest import read_manifest
from tests.journeys.processes import standalone
from tests.tiers import soak


@pytest.fixture
def few(monkeypatch, tmp_path):
    monkeypatch.setattr(packages, "IN_TASKS", ("python-dateutil", "not-installed"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_an_archive_holds_our_packages_and_what_tasks_need(few, tmp_path):
    packed = pack(tmp_path / "env.tar.gz")
    assert set(packed.versions) == {"adapt-streams", "python-dateutil", "six"}
    with tarfile.open(packed.path) as archive:
        names = set(archive.getnames())
    assert {"lib/adapt/__init__.py", "lib/adapt/traces/spark/packages.py", "lib/six.py"} <= names
    assert any(name.endswith("dist-info/METADATA") and "adapt" in name for name in names)
    assert not any("__pycache__" in name or "/tests/" in name for name in names)


def test_the_same_packages_are_packed_once_and_to_the_same_bytes(few, tmp_path):
    made = packed_once()
    assert made.read_bytes() == pack(tmp_path / "env.tar.gz").path.read_bytes()
    os.utime(made, (1, 1))
    assert packed_once().stat().st_mtime == 1
    assert list(made.parent.iterdir()) == [made]


def test_an_archive_that_cannot_be_written_is_one_sentence(few, tmp_path):
    with pytest.raises(EnvironmentFailure, match=r"^cannot write .*: No such file or directory; choose"):
        pack(tmp_path / "absent" / "env.tar.gz")


@soak
def test_a_cluster_with_pyspark_alone_gives_the_content_of_a_local_run(adapt, spark, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    (site,) = (tmp_path / "bare").glob("lib/*/site-packages")
    for package in (pyspark, py4j):
        (site / package.__name__).symlink_to(Path(package.__file__).parent)
    (tmp_path / "a.csv").write_text("ts,key\n" + "".join(f"{at},k{at % 7}\n" for at in range(1000)))
    line = ["ingest", str(tmp_path / "a.csv"), "--key", "key", "--time", "ts", "-o"]
    adapt.done(*line, str(tmp_path / "here.trace"))
    with standalone(tmp_path) as master:
        done = subprocess.run(
            [Path(sys.executable).with_name("adapt"), *line, tmp_path / "there.trace", "--master", master],
            env={**os.environ, "PYSPARK_PYTHON": str(tmp_path / "bare" / "bin" / "python")},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    here, there = (read_manifest(tmp_path / f"{name}.trace").content_hash for name in ("here", "there"))
    assert there == here
