"""`adapt clean` names leftovers first, and a store's troubles are narrated."""

import json
import os

import pytest

from adapt.traces.block_cache import CACHE
from adapt.traces.leftovers import UNUSED_S
from adapt.traces.locations import failures
from tests.fault_proxy import Fault, first
from tests.traces.small_traces import write_trace


@pytest.fixture
def left(tmp_path):
    """A folder with what a killed run left."""
    (tmp_path / ".x.run.partial").mkdir()
    (tmp_path / ".x.run.partial" / "a.parquet").write_bytes(b"12")
    return tmp_path


def test_leftovers_are_listed_then_removed(adapt, left):
    young = adapt.done("clean", left)
    assert (young.out, young.err) == ("", "0 leftovers found; 1 younger than 1h skipped, see --older-than\n")
    listed = adapt.done("clean", left, "--older-than", "0s")
    assert ".x.run.partial" in listed.out
    assert listed.err == "1 leftover found; --yes removes them\n"
    rows = json.loads(adapt.done("clean", left, "--older-than", "0s", "--format", "json").out)["tables"][0]["rows"]
    assert [(row["about"], row["files"], row["size"]) for row in rows] == [("unfinished output", 1, 2)]
    assert adapt.done("clean", left, "--older-than", "0s", "--yes").err == "1 leftover removed\n"
    assert list(left.iterdir()) == []


def test_leftovers_in_a_store_are_removed(adapt, bucket):
    (bucket / "x.run" / "_run-1" / "a").write_bytes(b"12")
    assert "x.run/_run-1" in adapt.done("clean", bucket, "--older-than", "0s", "--yes").out
    assert list(bucket.rglob("*")) == []


def test_repeated_requests_are_narrated_if_verbose(adapt, proxy, bucket, monkeypatch):
    monkeypatch.setattr(failures, "_FIRST_WAIT_S", 0.001)
    (bucket / "a").write_bytes(b"")
    for verbose in (False, True):
        proxy.failing = first(2, Fault.BUSY)
        said = adapt.done("clean", bucket, *(["-v"] if verbose else []))
        assert (f"{bucket}: the store answered 503 SlowDown; attempt 3 of 6 in 0.0 s\n" in said.err) == verbose


def test_results_that_no_run_reads_any_more_are_removed(adapt, tmp_path):
    for day in range(2):
        rows = {"ts": list(range(day * 1000, day * 1000 + 1000)), "key": ["a", "b"] * 500}
        write_trace(tmp_path / f"{day}.trace", rows)
    adapt.done("verdict", tmp_path, "--channels", "2")
    assert {path.suffix for path in (tmp_path / CACHE).iterdir()} == {".freq", ".panes", ".profile"}

    def grow_old():
        for path in (tmp_path / CACHE).rglob("*"):
            os.utime(path, ns=(then := path.stat().st_mtime_ns - round((UNUSED_S + 60) * 1e9), then))

    grow_old()
    adapt.done("verdict", tmp_path, "--channels", "2")
    assert "0 leftovers" in adapt.done("clean", tmp_path, "--yes").err
    grow_old()
    said = adapt.done("clean", tmp_path, "--yes")
    assert said.err == "3 leftovers removed\n"
    assert list((tmp_path / CACHE).iterdir()) == []
