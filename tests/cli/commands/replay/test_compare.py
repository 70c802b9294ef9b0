"""`adapt replay compare`: what it prints and keeps, what is reported and checked of it, and ways to get it wrong."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.traces.store.runs import read_run
from tests.traces.small_traces import write_trace

ROWS = 2_000
QUICK = "x.trace --channels 3 --partitions 8 --state 50 --jobs 1 --seeds 1"
OWN = """[[scenario]]
name = "mine"
flux = "load"
shed = true
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A trace in which a third of the rows has one key, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADAPT_MASTER", raising=False)
    chance = np.random.default_rng(2)
    keys = np.where(chance.random(ROWS) < 0.33, 0, chance.integers(1, 200, ROWS))
    times = np.sort(chance.uniform(0, 500, ROWS))
    columns = {"ts": (times * 1e6).astype(np.int64), "key": pa.array([f"k{key}" for key in keys])}
    write_trace(tmp_path / "x.trace", columns)
    (tmp_path / "own.toml").write_text(OWN)
    return tmp_path


def test_a_comparison_is_printed_kept_reported_and_checked(adapt, here):
    line = (
        f"{QUICK} --scenario split-w-choices --scenario elastic --scenarios own.toml --scenario mine -o x.run".split()
    )
    document = adapt.json("replay", "compare", *line)
    assert document["schema"] == "adapt.run/2"
    assert document["mechanism"] == "compare"
    names = ["static-uniform", "split-w-choices", "elastic", "mine"]
    assert [row["scenario"] for row in document["scenarios"]] == names
    assert document["parameters"]["scenarios"]["mine"] == {"name": "mine", "flux": "load", "sheds": True}
    assert read_run(here / "x.run").as_data() == document
    shown = adapt.done("replay", "compare", *line, "--force").out
    told = " ".join(shown.replace("\u202f", " ").split())
    assert " ".join(document["summary"]["verdict"].replace("\u202f", " ").split()) in told
    assert "the busiest of 3 workers of static-uniform is offered 1.20 times its capacity" in told
    assert max(map(len, shown.splitlines())) <= 80
    adapt.done("report", "x.run", "x.run/elastic.run", "--html", "x.html")
    page = (here / "x.html").read_text()
    for title in ("Cost against latency", "Workers", "Workers, elastic"):
        assert f"<h3>{title}</h3>" in page
    limits = ("--limit", "drop_rate <= 50%", "--limit", "offered <= 1.21", "--limit", "worker_time > 0s")
    adapt.done("check", "x.run", *limits)
    assert adapt("check", "x.run", "--limit", "rescales <= 0").code == 1


def test_loads_workers_and_seeds_are_swept_printed_kept_and_reported(adapt, here):
    line = "x.trace --partitions 8 --state 50 --jobs 1 --scenario split-pkg --channels 3,5 --offered 0.4,1.4 --seeds 3"
    document = adapt.json("replay", "compare", *line.split(), "-o", "x.run")
    points = {(row["workers"], row["offered"]): row for row in document["points"]}
    assert list(points) == [(3, 1.4), (3, 0.4), (5, 0.4), (5, 1.4)]
    assert points[3, 0.4]["scenario"] == "static-uniform"
    assert points[3, 0.4]["keeps_up"] == "yes"
    assert {row["seeds"] for row in document["points"]} == {3}
    assert document["summary"]["offered"] == pytest.approx(1.4)
    assert "3 seeds" in document["summary"]["verdict"]
    assert read_run(here / "x.run").as_data() == document
    first = adapt.done("replay", "compare", *line.split(), "-o", "x.run", "--force").out
    assert len(first.splitlines()) <= 24
    assert "By load and workers" in first
    shown = adapt.done("replay", "compare", *line.split(), "-o", "x.run", "--force", "--all").out
    assert max(map(len, shown.splitlines())) <= 80
    reported = adapt.done("report", "x.run", "--html", "x.html").out
    titles = ("By load and workers", "Over seeds")
    assert all(title in shown for title in titles)
    places = [f"\n{reported}".find(f"\n{title}") for title in (*titles, "Scenarios\n")]
    assert places[0] >= 0
    assert places == sorted(places)
    page = (here / "x.html").read_text()
    for title in ("Cost against latency", "p99 by load"):
        assert f"<h3>{title}</h3>" in page


def test_the_rates_that_are_sustained_are_told(adapt, here):
    line = f"{QUICK} --scenario static-uniform --sustainable -o x.run".split()
    document = adapt.json("replay", "compare", *line)
    assert [row["channels"] for row in document["sustained"]] == [2, 3, 6]
    assert len(document["demand"]) == 7
    adapt.done("check", "x.run", "--limit", f"sustainable >= {0.99 * document['sustained'][1]['sustainable']}")
    shown = adapt.done("report", "x.run", "--html", "x.html").out
    assert "Workers needed against load" in shown
    page = (here / "x.html").read_text()
    for title in ("Sustainable throughput", "Demand"):
        assert f"<h3>{title}</h3>" in page


@pytest.mark.parametrize(
    ("code", "line", "sentence"),
    [
        (2, "--scenario flux-laod", "scenario 'flux-laod' does not exist; did you mean 'flux-load'"),
        (2, "--offered 1.2,fast", "--offered takes numbers such as 0.8,1.2 (got '1.2,fast')"),
        (2, "--offered 1.2,1.2", "--offered takes each value once"),
        (2, "--pool 2 --workers 3", "the pool of 2 workers is smaller than the 3"),
        (2, "--state bytes", "x.trace has no "),
        (
            3,
            "--scenarios wrong.toml",
            "wrong.toml: line 3: scenario 'a' has an unknown field 'shedd'; did you mean 'shed'",
        ),
        (
            3,
            "--scenarios both.toml",
            "both.toml: line 1: scenario 'a': drop and elastic exclude each other; remove one",
        ),
        (2, "--scenarios small.toml", "scenario 'a': the pool of 2 workers is smaller than the 4"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(adapt, here, code, line, sentence):
    (here / "wrong.toml").write_text("[[scenario]]\nname = 'a'\nshedd = true\n")
    (here / "small.toml").write_text("[[scenario]]\nname = 'a'\nelastic = 'ds2'\npool = 2\n")
    both = "[[scenario]]\nname = 'a'\nelastic = 'ds2'\ndrop = 'exact'\n"
    (here / "both.toml").write_text(both)
    more = "" if "--workers" in line else " --workers 4"
    more += "" if "--channels" in line else " --channels 8"
    assert sentence in adapt.refused(code, "replay", "compare", "x.trace", "--jobs", "1", *line.split(), *more.split())
    assert not (here / ".x.run.scenarios").exists()
