"""The class-data archive: recorded by one run, used by the next, never in the way."""

import logging

import pytest

from adapt.traces.spark.class_archive import archive_options

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
