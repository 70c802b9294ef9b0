"""`adapt check`: what each exit code is for; and `adapt clean`."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

from adapt.cli.main import run
from adapt.traces.block_cache import CACHE
from adapt.traces.leftovers import UNUSED_S
from adapt.traces.locations import failures
from adapt.traces.store.manifest import write_manifest
from tests.fault_proxy import Fault, first
from tests.traces.small_traces import write_trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A stream, and two plans of it: one even, one with a fullest channel of more than 1.1 times the average."""
    folder = tmp_path_factory.mktemp("made")
    counts = folder / "counts.csv"
    counts.write_text("".join(f"k{number},{9000 // number}\n" for number in range(1, 200)))
    for name, scheme in (("even", "bounded:cap=1.01"), ("hashed", "uniform")):
        out = folder / f"{name}.plan"
        assert run(["partition", "build", str(counts), "--channels", "4", "--scheme", scheme, "-o", str(out)]) == 0
    return folder


@pytest.fixture
def made(folder, tmp_path, monkeypatch):
    """A copy of them in the current folder."""
    monkeypatch.chdir(shutil.copytree(folder, tmp_path / "made"))
    return Path.cwd()


def test_0_where_all_limits_hold(adapt, made):
    said = adapt.done(
        "check", "even.plan", "--limit", "imbalance<=1.1", "-l", "pinned_keys<=1000", "-l", "times_best_possible<=1.1"
    )
    assert "All 3 limits hold." in said.out
    assert said.err == ""


def test_1_where_a_limit_fails(adapt, made):
    said = adapt("check", "hashed.plan", "--limit", "imbalance<=1.1", "--limit", "channels==4")
    assert said.code == 1
    assert "1 of 2 limits failed." in said.out
    assert "FAILS" in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--limit", "imbalence<=100"], "did you mean 'imbalance'?"),
        (["--limit", "top_share<=20"], "did you mean 20%?"),
        (["--limit", "latency_p99<=100s"], "even.plan, a plan, has no latency_p99"),
        (["--limit", "imbalance[scheme=boundd]<=100"], "did you mean 'bounded'?"),
        (["--limit", "imbalance"], "or --baseline"),
        (["--limit", "imbalance<=2", "--channels", "4"], "--channels needs a trace"),
        ([], "give --limit"),
    ],
)
def test_2_where_it_is_asked_wrongly(adapt, made, arguments, told):
    assert told in adapt.refused(2, "check", "even.plan", *arguments)


@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        ("none.plan", None, "does not exist"),
        ("other.json", '{"schema": "adapt.report/2"}', "not a plan, evaluation or comparison"),
        ("newer.json", '{"schema": "adapt.evaluation/3", "plans": []}', "schema must be adapt.evaluation/2"),
        ("torn.json", '{"schema": "adapt.evaluation/2", "plans": [{}]}', "damaged"),
    ],
)
def test_3_where_an_artefact_cannot_be_read(adapt, made, path, content, told):
    if content is not None:
        (made / path).write_text(content)
    assert told in adapt.refused(3, "check", path, "--limit", "imbalance<=100")


def test_every_format_says_the_same(adapt, made):
    asked = ["check", "hashed.plan", "--limit", "imbalance<=1.1", "--limit", "channels==4"]
    document = json.loads(adapt(*asked, "--format", "json").out)
    assert (document["schema"], document["passed"]) == ("adapt.check/1", False)
    assert [each["passed"] for each in document["limits"]] == [False, True]
    (suite,) = ET.fromstring(adapt(*asked, "--format", "junit").out.encode())
    assert [case.find("failure") is None for case in suite] == [False, True]
    rows = [line for line in adapt(*asked, "--format", "md").out.splitlines() if line.startswith("|")]
    assert ["FAILS" in row for row in rows[2:]] == [True, False]


def test_a_baseline_says_what_may_not_become_worse(adapt, made):
    adapt.done("check", "even.plan", "--baseline", "even.plan", "--limit", "imbalance")
    said = adapt("check", "hashed.plan", "--baseline", "even.plan", "--limit", "imbalance", "--limit", "channels==4")
    assert said.code == 1
    assert "1 of 2 limits failed." in said.out
    adapt.done("check", "hashed.plan", "--baseline", "even.plan", "--limit", "imbalance worse-by 400%")


def test_limits_stand_in_a_file(adapt, made):
    (made / "limits.toml").write_text('limits = ["imbalance <= 1.1", "times_best_possible worse-by 1%"]\n')
    asked = ["--limits", "limits.toml", "--baseline", "even.plan"]
    adapt.done("check", "even.plan", *asked)
    assert adapt("check", "hashed.plan", *asked).code == 1
    assert "none.toml" in adapt.refused(3, "check", "even.plan", "--limits", "none.toml")
    (made / "limits.toml").write_text('limits = ["imbalence <= 1.1"]')
    told = adapt.refused(2, "check", "even.plan", "--limits", "limits.toml")
    assert "limits.toml: limit 'imbalence <= 1.1'" in told


def test_counted_keys_are_judged_under_an_engine_or_a_plan(adapt, made):
    for engine in ("spark", "kafka", "flink"):
        said = adapt(
            "check", "counts.csv", "--engine", engine, "--channels", 4, "-l", "imbalance<=1", "--format", "json"
        )
        (limit,) = json.loads(said.out)["limits"]
        assert said.code == 1
        assert limit["where"] == {"engine": engine, "channels": "4"}
    share = 9000 / sum(9000 // number for number in range(1, 200))
    under = ["check", "counts.csv", "--engine", "even.plan", "--format", "json"]
    limits = ("imbalance<=1.1", f"top_share<={share + 0.001:.4f}", f"useful_workers>={1 / share - 0.01:.4f}")
    said = adapt.done(*under, *(word for limit in limits for word in ("--limit", limit)))
    assert [each["where"]["channels"] for each in json.loads(said.out)["limits"]] == ["4"] * 3
    assert "omit --channels" in adapt.refused(2, *under, "-l", "imbalance<=2", "--channels", 5)
    assert "did you mean 'flink'" in adapt.refused(2, "check", "counts.csv", "--engine", "flinc", "-l", "imbalance<=2")


def test_a_topic_is_said_to_be_judged_by_another_placement(adapt, made, tmp_path):
    columns = {"ts": list(range(9)), "key": list("abcabcabc"), "partition": pa.array([0, 1, 2] * 3, pa.int32())}
    trace = write_trace(tmp_path / "t.trace", columns)
    profile = {**trace.profile, "facts": {"null_keys": 0, "empty_keys": 0}}
    write_manifest(trace.path, replace(trace.manifest, summary={**trace.manifest.summary, "profile": profile}))
    note = f"{trace.path}: judged is the placement of spark, not the topic's partitions"
    for limit, said in (("imbalance<=9", {"assumptions": [note]}), ("rows>=9", {})):
        document = adapt.json("check", trace.path, "--limit", limit)
        assert {name: document[name] for name in document if name == "assumptions"} == said


def test_comparisons_are_selected_by_row(adapt, made):
    adapt.done(
        "partition",
        "compare",
        "counts.csv",
        "--channels",
        "3:4",
        "--scheme",
        "uniform",
        "--scheme",
        "bounded:cap=1.01",
        "-o",
        "x.plans",
    )
    adapt.done(
        "check", "x.plans", "--limit", "imbalance[scheme=bounded,channels=4]<=1.1", "--limit", "m[channels!=3]<=10"
    )
    said = adapt("check", "x.plans", "--limit", "imbalance[scheme!=spark]<=1.1")
    assert (said.code, "scheme=uniform" in said.out) == (1, True)


def test_metrics_are_listed(adapt):
    said = adapt.done("check", "--metrics")
    for name in ("imbalance", "b(1+m)", "latency_p99", "top_share"):
        assert name in said.out


def test_a_plan_and_a_comparison_are_checked_without_anything_heavy(adapt, made):
    adapt.done("partition", "compare", "counts.csv", "--channels", "4", "--scheme", "bounded:cap=1.01", "-o", "x.plans")
    heavy = ("pyspark", "numba", "pandas", "scipy", "jinja2", "vl_convert", "mmh3")
    code = (
        "import sys; from adapt.cli.main import run;"
        " assert run(['check', 'even.plan', 'x.plans', '--limit', 'imbalance[scheme!=spark]<=1.1']) == 0;"
        f" print(*[name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stderr.split() == []


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
    rows = adapt.json("clean", left, "--older-than", "0s")["tables"][0]["rows"]
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
