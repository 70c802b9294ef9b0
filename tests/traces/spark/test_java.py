"""Java, its archive of classes, and packages for executors."""

import logging
import os
import tarfile
import tempfile

import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.traces.spark import packages
from adapt.traces.spark.class_archive import archive_options
from adapt.traces.spark.packages import pack, packed_once, task_packages
from tests.journeys.processes import bare_python
from tests.journeys.test_object_store import contents, lines_at, log

JAVA = """#!/bin/sh
case "$*" in
  -version) echo 'openjdk version "21.0.1"' ;;
  *-Xshare:on*) exit {has_own} ;;
  *-Xshare:dump*) for each; do case $each in *File=*) echo base > "${{each#*File=}}" ;; esac; done ;;
esac
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


def java_home(tmp_path, has_own=0):
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(JAVA.format(has_own=has_own))
    java.chmod(0o755)
    return java.parent.parent


def recorded(options):
    """Play the Java process that ends: its recording is written, the header last."""
    path = options.partition("ArchiveClassesAtExit=")[2].strip("'")
    with open(path, "wb") as file:
        file.write(b"classes of Spark")
    return path


def test_the_first_run_records_and_the_next_one_reads(tmp_path, cache):
    home = java_home(tmp_path)
    first = archive_options(home)
    assert first.startswith(f"'-XX:ArchiveClassesAtExit={cache}")
    recorded(first)
    second = archive_options(home)
    (archive,) = cache.rglob("*.jsa")
    assert second == f"'-XX:SharedArchiveFile={archive}'"
    assert not list(cache.rglob("*.recording"))


def test_of_two_first_runs_one_records(tmp_path, cache):
    home = java_home(tmp_path)
    first = archive_options(home)
    assert "ArchiveClassesAtExit" in first
    assert archive_options(home) == ""
    recorded(first)
    assert "SharedArchiveFile" in archive_options(home)


def test_a_damaged_archive_is_recorded_again(tmp_path, cache, caplog):
    home = java_home(tmp_path)
    recorded(archive_options(home))
    archive_options(home)
    (archive,) = cache.rglob("*.jsa")
    archive.write_bytes(b"classes of Sp4rk")
    with caplog.at_level(logging.INFO, "adapt"):
        assert "ArchiveClassesAtExit" in archive_options(home)
    assert "is damaged; it is recorded again" in caplog.text


@pytest.mark.parametrize("spoiled", ["a file where the cache folder should be", "a Java that fails"])
def test_what_goes_wrong_is_said_with_v_alone(tmp_path, cache, caplog, spoiled):
    home = java_home(tmp_path)
    if spoiled == "a Java that fails":
        (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    else:
        cache.write_text("")
    with caplog.at_level(logging.INFO, "adapt"):
        assert archive_options(home) == ""
    assert "without a class-data archive" in caplog.text


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


def test_without_a_cache_no_folder_is_used_that_others_can_prepare(few, tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "user_cache", lambda: [tmp_path / "file"])
    (tmp_path / "file").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "adapt-packages").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    packages._private_folder.cache_clear()
    made = packed_once()
    assert packed_once() == made
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "elsewhere").iterdir()) == []
    packages._private_folder.cache_clear()


def test_an_archive_that_cannot_be_written_is_one_sentence(few, tmp_path):
    with pytest.raises(EnvironmentFailure, match=r"^cannot write .*: No such file or directory; choose"):
        pack(tmp_path / "absent" / "env.tar.gz")


def test_a_python_with_pyspark_alone_ingests_with_the_packed_files(adapt, spark, tmp_path, monkeypatch):
    for name, path in packages._files(task_packages()).items():
        link = tmp_path / "lib" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
        if (path.parent / "__pycache__").is_dir() and not (link.parent / "__pycache__").exists():
            (link.parent / "__pycache__").symlink_to(path.parent / "__pycache__")
    given = {True: ["--master", "local[2]"], False: []}
    for bare, options in given.items():
        (tmp_path / str(bare)).mkdir()
        (tmp_path / str(bare) / "access.log").write_bytes(log(50))
        with monkeypatch.context() as patched:
            if bare:
                patched.setattr(spark.sparkContext, "pythonExec", bare_python(tmp_path / "bare"))
                patched.setitem(spark.sparkContext.environment, "PYTHONPATH", str(tmp_path / "lib"))
            adapt.done(*lines_at(str(tmp_path / str(bare)))[0], *options)
    assert contents(tmp_path / "True") == contents(tmp_path / "False")
