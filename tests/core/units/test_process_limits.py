"""Limits of the process that native code does not survive are refused before it is called."""

import resource
import subprocess
import sys

import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.core.report.svg import chart_renderer
from adapt.core.units import process_limits
from adapt.traces.spark.java import find_java_home

FREE = resource.RLIM_INFINITY


def limited(monkeypatch, space=FREE, files=FREE):
    limits = {resource.RLIMIT_AS: (space, space), resource.RLIMIT_NOFILE: (files, files)}
    monkeypatch.setattr(process_limits, "getrlimit", limits.__getitem__)


@pytest.mark.parametrize(
    ("native", "limits", "sentence"),
    [
        (
            find_java_home,
            {"space": 3 * 10**9},
            "Spark's Java needs 6 GB of address space, and `ulimit -v` allows 3.0 GB;",
        ),
        (find_java_home, {"files": 64}, "Spark's Java needs 512 open files, and `ulimit -n` allows 64;"),
        (chart_renderer, {"space": 3 * 10**9}, "drawing charts needs 72 GB of address space,"),
    ],
)
def test_native_code_is_not_called_within_limits_that_are_too_low(monkeypatch, native, limits, sentence):
    limited(monkeypatch, **limits)
    with pytest.raises(EnvironmentFailure) as refused:
        native()
    assert str(refused.value).startswith(sentence)
    assert "run `ulimit -" in str(refused.value)


def test_every_command_needs_some_space_and_files(adapt, monkeypatch, tmp_path):
    limited(monkeypatch, space=10**9)
    assert "adapt needs 2 GB of address space" in adapt.refused(4, "verdict", tmp_path, "--channels", 8)
    limited(monkeypatch, files=16)
    assert "adapt needs 64 open files" in adapt.refused(4, "report", tmp_path)


def test_a_soft_limit_of_open_files_is_raised():
    code = (
        "import resource as r; from adapt.core.units.process_limits import require_limits; limit = r.RLIMIT_NOFILE\n"
        "r.setrlimit(limit, (16, r.getrlimit(limit)[1])); require_limits('it', files=64); print(r.getrlimit(limit)[0])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "64\n"
