"""`adapt partition export`: the folder, what it says, and what it refuses in a line."""

import json

import pyarrow as pa
import pytest

from tests.traces.small_traces import trace_of_source


@pytest.fixture
def plan(adapt, tmp_path):
    (tmp_path / "counts.csv").write_text("hot,50\nwarm,20\ncold,10\nzebra,5\n")
    path = tmp_path / "web.plan"
    adapt.done(
        "partition",
        "build",
        tmp_path / "counts.csv",
        "--channels",
        4,
        "--engine",
        "consistent:hash=xxhash64",
        "-o",
        path,
    )
    return path


def test_a_plan_is_exported(adapt, tmp_path, plan):
    said = adapt.done("partition", "export", plan, "--to", "kafka", "-o", tmp_path / "out", "--format", "json")
    told = json.loads(said.out)
    assert told["target"] == "kafka"
    assert {entry["file"] for entry in told["files"]} >= {"plan.json", "plan.txt", "README.md"}
    assert f"see {tmp_path / 'out' / 'README.md'}" in said.err
    assert "exists; add --force" in adapt.refused(
        4, "partition", "export", plan, "--to", "kafka", "-o", tmp_path / "out"
    )
    adapt.done("partition", "export", plan, "--to", "kafka", "-o", tmp_path / "out", "--force")


def test_a_compared_plan_with_split_keys_is_exported_and_evaluated(adapt, tmp_path):
    (tmp_path / "counts.csv").write_text("hot,500\nwarm,90\n" + "".join(f"user{at},10\n" for at in range(40)))
    counts, made = tmp_path / "counts.csv", tmp_path / "compared"
    adapt.done("partition", "compare", counts, "--channels", 4, "--engine", "kafka", "-o", made)
    plan, out = made / "split-hot.plan", tmp_path / "out"
    said = adapt.done("partition", "export", plan, "--to", "rekey", "--engine", "kafka", "-o", out, "--format", "json")
    files = {entry["file"] for entry in json.loads(said.out)["files"]}
    assert files >= {"rekey.json", "rekey.csv", "rekey.py", "Rekey.java", "ksqldb.sql", "duckdb.sql", "README.md"}
    assert len(json.loads((out / "rekey.json").read_text())["keys"]["hot"]) > 1
    assert "Merging split keys" in adapt.done("partition", "evaluate", counts, plan).out
    measured = json.loads(adapt.done("partition", "evaluate", counts, plan, "--format", "json").out)["plans"][1]
    assert measured["measured"]["imbalance"] < 1.2
    assert measured["merging"]["merge_messages"] > 1
    wrong = ("partition", "export", plan, "-o", tmp_path / "no")
    assert "other keys on kafka" in adapt.refused(3, *wrong, "--to", "rekey", "--engine", "spark")
    assert "--engine has no effect with --to kafka" in adapt.refused(2, *wrong, "--to", "kafka", "--engine", "kafka")
    assert "export it --to rekey" in adapt.refused(3, *wrong, "--to", "kafka")
    assert "measure it with" in adapt.refused(3, "partition", "diff", counts, plan, made / "uniform.plan")


def test_no_replacement_is_a_key_of_the_trace(adapt, tmp_path):
    keys = ["hot"] * 50 + ["a~b", "c#d", "e"] * 5
    trace, plan, out = tmp_path / "log.trace", tmp_path / "web.plan", tmp_path / "out"
    trace_of_source(trace, pa.table({"ts": range(len(keys)), "key": keys}))
    pins = ("--pin", "hot=0", "--pin", "e=1")
    adapt.done("partition", "build", trace, "--channels", 4, "--engine", "kafka", *pins, "-o", plan)
    adapt.done("partition", "export", plan, "--to", "rekey", "--trace", trace, "-o", out)
    assert "No key of the trace has `^`" in (out / "README.md").read_text()
    table = json.loads((out / "rekey.json").read_text())
    assert (table["separator"], table["trace"] is not None) == ("^", True)
    taken = ("--trace", trace, "--separator", "~", "-o", tmp_path / "no")
    assert "occurs in key 'a~b'" in adapt.refused(2, "partition", "export", plan, "--to", "rekey", *taken)
