"""A policy as a stranger writes it, in a folder of its own: checked, replayed, compared, and shown in the report."""

import json
import re
import sys

import numpy as np
import pyarrow as pa
import pytest

from adapt.traces.own.modules import own_codes
from adapt.traces.replay import compare
from adapt.traces.store.runs import read_run
from tests.docs.pages import blocks
from tests.traces.small_traces import write_trace

ROWS = 6_000
STAGE = "--speedup 20 --partitions 8 --state 100"
SCALES = """
import math


class Follow:
    def __init__(self, target: float = 0.7) -> None:
        self.target = target

    def workers(self, view):
        return max(1, math.ceil(view.utilization.sum() / self.target))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The policy of the page and one that scales, beside a trace with a hot key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    page = {block.file: block.text for block in blocks("docs/your-own-policy.md") if block.file}
    assert len([line for line in page["my_policies.py"].splitlines() if line]) <= 15
    for name, text in page.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "scales.py").write_text(SCALES)
    chance = np.random.default_rng(1)
    keys = np.where(chance.random(ROWS) < 0.1, 0, chance.integers(1, 500, ROWS))
    write_trace(tmp_path / "x.trace", {"ts": np.arange(ROWS) * 10_000, "key": pa.array([f"k{key}" for key in keys])})
    yield tmp_path
    monkeypatch.chdir("/")
    own_codes("policy", [])  # forget the modules of this folder


def cases(document):
    return [row["case"] for row in document["cases"]]


def test_the_policy_of_the_page_is_replayed_and_shown(adapt, here):
    line = f"replay flux x.trace --workers 4 --load 1@0s --service-time 1ms {STAGE} --policy load -o x.flux"
    mine = "--policy", "my_policies:Calm:threshold=0.1"
    words = [*line.split(), *mine, "--format", "json"]
    document = json.loads(adapt.done(*words).out)
    assert cases(document) == ["static", "load", "my_policies:Calm"]
    (own,) = document["parameters"]["own_policies"]
    assert (own["module"], own["name"], own["options"]) == ("my_policies", "Calm", {"threshold": 0.1})
    assert len(own["source"]) == 64
    moves = {row["case"]: row["moves"] for row in document["cases"]}
    assert moves["my_policies:Calm"] > 0
    assert read_run(here / "x.flux").manifest.made.parameters["own_policies"] == [own]
    adapt.done("report", "x.flux", "--html", "x.html")
    assert "my_policies:Calm" in (here / "x.html").read_text()


def test_a_policy_that_scales_is_a_case_of_elastic(adapt, here):
    line = f"replay elastic x.trace --pool 6 --workers 1 --scale-out-delay 100ms --period 50ms {STAGE}"
    more = "--service-time 1ms --policy scales:Follow --policy ds2 --format json -o x.elastic"
    document = json.loads(adapt.done(*f"{line} {more}".split()).out)
    assert cases(document) == ["fixed", "scales:Follow", "ds2"]
    assert document["parameters"]["own_policies"][0]["options"] == {}
    workers = {row["case"]: row["workers_max"] for row in document["cases"]}
    assert workers["scales:Follow"] > 1
    assert adapt.done("check", "x.elastic", "--limit", "workers_mean[case=scales:Follow] > 1").code == 0


def test_own_policies_are_scenarios_of_a_comparison(adapt, here, monkeypatch):
    line = "replay compare x.trace --channels 3 --partitions 4 --scenario static-uniform --format json -o x.run --force"
    words = [*line.split(), "--policy", "my_policies:Calm", "--policy", "scales:Follow", "--jobs"]
    document = json.loads(adapt.done(*words, "2").out)
    names = [row["scenario"] for row in document["scenarios"]]
    assert names == ["static-uniform", "my_policies.Calm", "scales.Follow"]
    kept = document["parameters"]["scenarios"]["my_policies.Calm"]["flux"]
    assert (kept["name"], len(kept["source"])) == ("Calm", 64)
    ran = []
    monkeypatch.setattr(
        compare, "run_scenario", lambda job, real=compare.run_scenario: ran.append(real(job)) or ran[-1]
    )
    assert json.loads(adapt.done(*words, "1").out) == document
    assert ran == []
    (here / "scales.py").write_text(SCALES.replace("0.7", "0.25"))
    adapt.done(*words, "1")
    assert ran == ["scales.Follow"]


FILE = """
[[scenario]]
name = "calm"
flux = "my_policies:Calm"
policy_options = { threshold = 0.1 }

[[scenario]]
name = "follow"
elastic = "scales:Follow"
scale_out_delay = "200ms"

[[scenario]]
name = "in-turn"
plan = "my_schemes:in_turn"
"""


def test_a_file_of_scenarios_names_own_policies_and_schemes(adapt, here):
    (here / "own.toml").write_text(FILE)
    line = "replay compare x.trace --channels 3 --partitions 4 --seeds 1 --scenarios own.toml --jobs 1 --format json"
    document = json.loads(adapt.done(*line.split(), "--policy", "my_policies:Calm:threshold=0.1").out)
    rows = {row["scenario"]: row for row in document["scenarios"]}
    assert list(rows) == ["static-uniform", "calm", "follow", "in-turn", "my_policies.Calm"]
    same = {name: value for name, value in rows["my_policies.Calm"].items() if name not in ("scenario", "best")}
    assert same == {name: rows["calm"][name] for name in same}, "as the option --policy does"
    assert rows["in-turn"]["imbalance_max"] < rows["static-uniform"]["imbalance_max"]
    assert rows["follow"]["rescales"] > 0
    kept = document["parameters"]["scenarios"]
    assert (kept["calm"]["flux"]["options"], kept["in-turn"]["plan"]["name"]) == ({"threshold": 0.1}, "in_turn")
    assert "my_schemes" in kept["in-turn"]["plan"]["module"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ("flux = 'my_policies:Clam'", "my_policies has no class or function 'Clam'; did you mean 'Calm'?"),
        (
            "flux = 'my_policies:Calm'\npolicy_options = {threshold = 'x'}",
            "policy_options threshold must be a number (got 'x')",
        ),
        ("plan = 'my_schemes:in_trun'", "has no class or function 'in_trun'; did you mean 'in_turn'?"),
    ],
)
def test_a_file_that_names_them_wrongly_is_refused_in_one_sentence(adapt, here, fields, sentence):
    (here / "own.toml").write_text(f"[[scenario]]\nname = 'a'\n{fields}\n")
    assert sentence in adapt.refused(3, "replay", "compare", "x.trace", "--scenarios", "own.toml")


ROUND = r"round 1 at 0\.1\d* s"
WRONG = {
    "return {0: 99}": f"policy wrong:Wrong, {ROUND}: moves partition 0 to worker 99, but workers are 0 to 3",
    "return view.load[999]": f"policy wrong:Wrong failed in {ROUND}: IndexError: .*wrong.py, line 3\\)",
    "pass": f"policy wrong:Wrong, {ROUND}: moves must return a mapping of partition to worker, .*None",
}


@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_move_is_one_sentence(adapt, here, body):
    (here / "wrong.py").write_text(f"class Wrong:\n    def moves(self, view):\n        {body}\n")
    done = adapt("replay", "flux", "x.trace", "--workers", "4", *STAGE.split(), "--policy", "wrong:Wrong")
    assert done.code == 3
    (sentence,) = [line for line in done.err.splitlines() if line.startswith("adapt: ")]
    assert re.match(f"adapt: {WRONG[body]}", sentence)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--policy scales:Follow",
            "policy scales:Follow has no method moves(self, view); it fits `adapt replay elastic`",
        ),
        ("--policy my_policies:Calm:thresh=1", "my_policies:Calm has no such parameter; did you mean 'threshold'?"),
    ],
)
def test_wrong_usage_is_one_sentence(adapt, here, words, sentence):
    done = adapt("replay", "flux", "x.trace", "--workers", "4", *STAGE.split(), *words.split())
    assert done.code == 2
    assert sentence in done.err
