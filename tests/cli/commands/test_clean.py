"""`adapt clean` names leftovers first, and a store's troubles are narrated."""

import json

import pytest

from adapt.traces.locations import failures
from tests.fault_proxy import Fault, first


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


def test_a_secret_on_the_command_line_is_refused(adapt, bucket):
    said = adapt.refused(2, "clean", bucket, "--storage-option", "secret_access_key=HIDDEN")
    assert "secrets come from the environment" in said
    assert "HIDDEN" not in said
