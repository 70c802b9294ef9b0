"""The GitHub Action: its steps run as shell on the repository's own sample, with a stand-in for GitHub's client."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.tiers import soak

ROOT = Path(__file__).parent.parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOWS = ROOT / ".github" / "workflows"

CLIENT = """#!/usr/bin/env python3
import json, os, pathlib, sys
given, store = sys.argv[1:], pathlib.Path(os.environ["COMMENTS"])
comments = json.loads(store.read_text()) if store.exists() else {}
if os.environ["GH_TOKEN"] != "may write":
    sys.exit("HTTP 403: Resource not accessible by integration")
bodies = [pathlib.Path(each.removeprefix("body=@")).read_text() for each in given if each.startswith("body=@")]
if "--jq" in given:
    assert given[given.index("--jq") + 1] == ".[] | select(.body | startswith(env.mark)) | .id"
    print("\\n".join(name for name, body in comments.items() if body.startswith(os.environ["mark"])))
elif "PATCH" in given:
    (name,) = [each.rpartition("/")[2] for each in given if "/issues/comments/" in each]
    comments[name] = bodies[0]
else:
    assert "repos/we/stream/issues/7/comments" in given
    comments[str(100 + len(comments))] = bodies[0]
store.write_text(json.dumps(comments))
"""
"""What `gh api` does with the comments of a pull request, kept in a file."""


@dataclass
class Job:
    """A job of GitHub's: runs the steps of the action in order, each with the outputs of those before."""

    folder: Path
    inputs: dict[str, str]
    token: str = "may write"

    def __post_init__(self) -> None:
        self.values = {"github.event.pull_request.number": "7", "github.token": self.token}
        given = {name: self.filled(each.get("default", "")) for name, each in ACTION["inputs"].items()} | self.inputs
        self.values |= {f"inputs.{name}": text for name, text in given.items()}
        tools = self.folder / "tools"
        tools.mkdir(parents=True, exist_ok=True)
        (tools / "gh").write_text(CLIENT)
        (tools / "gh").chmod(0o755)
        path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.surroundings = os.environ | {
            "PATH": path,
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_REPOSITORY": "we/stream",
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "COMMENTS": str(self.folder / "comments.json"),
        }

    def filled(self, text: str) -> str:
        """With the value of every expression."""
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.values[found[1]], text)

    def run(self, step: dict[str, object]) -> "subprocess.CompletedProcess[str]":
        """One step, as GitHub starts it."""
        output = Path(self.surroundings["GITHUB_OUTPUT"])
        output.unlink(missing_ok=True)
        given = {name: self.filled(text) for name, text in step.get("env", {}).items()}
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=ROOT, env=self.surroundings | given, capture_output=True, text=True, check=False
        )
        for line in output.read_text().splitlines() if output.exists() else ():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
        return done

    def steps(self) -> "list[subprocess.CompletedProcess[str]]":
        """All steps."""
        return [self.run(step) for step in ACTION["runs"]["steps"]]

    def made(self, name: str) -> Path:
        """A file that the action names as its output."""
        return Path(self.values[f"steps.check.outputs.{name}"])


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on PATH, in which GitHub runs the steps")
OWN = yaml.safe_load((WORKFLOWS / "skew.yml").read_text())["jobs"]["skew"]["with"]
"""What the repository's own workflow asks for."""


@needs_bash
def test_the_steps_judge_the_sample_and_comment_once(tmp_path):
    job = Job(tmp_path, OWN)
    assert [step.returncode for step in job.steps()] == [0, 0, 0, 0]
    comment = job.made("comment").read_text()
    sample, headline = comment.splitlines()[:2]
    assert sample == "<!-- adapt: examples/skew/sample.csv -->"
    assert headline.startswith(
        "### Verdict: Pin 34 keys (8 workers): imbalance 2.656 in the median later window, 121 %"
    )
    assert "If the aggregate can be merged (--mergeable): split " in comment
    assert "All 3 limits hold." in comment
    assert str(tmp_path) not in comment
    assert (tmp_path / "summary").read_text() == comment
    junit = ET.parse(job.made("junit")).getroot()
    assert (junit.get("tests"), junit.get("failures"), junit.get("errors")) == ("3", "0", "0")
    _, _, comment_step, _ = ACTION["runs"]["steps"]
    assert job.run(comment_step).returncode == 0
    assert list(json.loads((tmp_path / "comments.json").read_text()).values()) == [comment]


@soak
@needs_bash
def test_a_broken_limit_fails_the_job_though_it_may_not_comment(tmp_path):
    (tmp_path / "limits.toml").write_text('limits = ["imbalance <= 1.5"]\n')
    worse = Job(tmp_path / "again", {**OWN, "limits": str(tmp_path / "limits.toml")}, token="may only read")
    installed, checked, commented, failed = worse.steps()
    assert (installed.returncode, checked.returncode, commented.returncode, failed.returncode) == (0, 0, 0, 1)
    assert commented.stdout.startswith("::warning::no comment")
    assert "1 of 1 limits failed." in worse.made("comment").read_text()
    assert ET.parse(worse.made("junit")).getroot().get("failures") == "1"


@needs_bash
def test_a_sample_that_is_not_there_fails_with_the_code_of_adapt(tmp_path):
    job = Job(tmp_path, {**OWN, "sample": "no such file; rm -rf x"})
    _, checked, _, failed = job.steps()
    assert (checked.returncode, failed.returncode) == (0, 3)
    assert checked.stderr.startswith("adapt: no such file; rm -rf x")
    assert "adapt could not check this sample (exit code 3)" in job.made("comment").read_text()


def test_no_step_has_an_expression_in_its_shell():
    """An input could close the quotes."""
    assert [step["name"] for step in ACTION["runs"]["steps"] if "${{" in step["run"]] == []


def test_the_reusable_workflow_has_the_inputs_of_the_action():
    workflow = yaml.safe_load((WORKFLOWS / "check-skew.yml").read_text())
    inputs = workflow[True]["workflow_call"]["inputs"]  # YAML 1.1 reads `on` as true
    own = {"adapt", "ref"}
    (used,) = [step["with"] for step in workflow["jobs"]["check"]["steps"] if step.get("uses") == "./.adapt"]
    assert inputs.keys() - own == ACTION["inputs"].keys() - {"token"} == used.keys()
    assert used == {name: f"${{{{ inputs.{name} }}}}" for name in used}
    for name in used:
        default = ACTION["inputs"][name].get("default")
        assert inputs[name] == {"type": "string", **({"required": True} if default is None else {"default": default})}
    assert OWN.keys() <= inputs.keys()
