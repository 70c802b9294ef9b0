"""`adapt partition export`: the folder, what it says, and what it refuses in a line."""

import json

import pytest

from adapt.core.engines.names import Target


@pytest.fixture
def plan(adapt, tmp_path):
    (tmp_path / "counts.csv").write_text("hot,50\nwarm,20\ncold,10\nzebra,5\n")
    path = tmp_path / "web.plan"
    adapt.done("partition", "build", tmp_path / "counts.csv", "--channels", 4, "--hash", "xxhash64", "-o", path)
    return path


@pytest.mark.parametrize("target", Target)
def test_a_plan_is_exported(adapt, tmp_path, plan, target):
    said = adapt.done("partition", "export", plan, "--to", target, "-o", tmp_path / "out", "--format", "json")
    told = json.loads(said.out)
    assert told["target"] == target
    assert {entry["file"] for entry in told["files"]} >= {"plan.json", "plan.txt", "README.md"}
    assert f"see {tmp_path / 'out' / 'README.md'}" in said.err
    assert "exists; add --force" in adapt.refused(
        4, "partition", "export", plan, "--to", target, "-o", tmp_path / "out"
    )
    adapt.done("partition", "export", plan, "--to", target, "-o", tmp_path / "out", "--force")


def test_a_plan_of_no_known_scheme_is_refused(adapt, tmp_path, plan):
    damaged = json.loads(plan.read_text()) | {"scheme": "hybird"}
    (tmp_path / "bad.plan").write_text(json.dumps(damaged))
    said = adapt.refused(3, "partition", "export", tmp_path / "bad.plan", "--to", "kafka", "-o", tmp_path / "out")
    assert "did you mean 'hybrid'" in said


def test_a_plan_that_splits_keys_is_refused(adapt, tmp_path, plan):
    splitting = json.loads(plan.read_text()) | {"scheme": "pkg"}
    (tmp_path / "pkg.plan").write_text(json.dumps(splitting))
    said = adapt.refused(3, "partition", "export", tmp_path / "pkg.plan", "--to", "kafka", "-o", tmp_path / "out")
    assert "splits keys" in said
    assert "--scheme hybrid" in said
    assert not (tmp_path / "out").exists()
