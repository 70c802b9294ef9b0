"""Every replay begins with one conclusion, whose numbers are those of its table and of its JSON document."""

import re

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.lint.finding import Finding, Severity
from adapt.core.values import duration
from tests.traces.small_traces import write_trace

ROWS = 3_000
NETWORK = """\
settings = { tick = "500ms" }
node = [{ name = "edge" }]
input = [{ name = "all", stream = { bucket = 0, of = 1 } }]
operator = [{ name = "read", node = "edge", kind = "map", inputs = ["all"], cost = 0.002 }]
output = [{ name = "out", from = "read" }]
"""
CHAIN = 'operator = [{ name = "a", kind = "stateless", cost = 5.0 }, { name = "b", kind = "stateful", cost = 5.0 }]'
LINES = {
    "repartition": "--channels 4 --period 500ms",
    "live": "--channels 4 --period 500ms --live --speedup 1",
    "flux": "--workers 4 --partitions 16 --state 100 --policy load --policy memory",
    "elastic": "--pool 4 --partitions 16 --state 100 --policy thresholds --policy lag",
    "fit": "--network n.toml --planner none,exact",
    "ordered": "--chain fraud.toml --workers 1,2,4 --backend sim",
    "compare": "--channels 4 --partitions 8 --state 50 --jobs 1 --seeds 3 --scenario split-pkg --scenario shed",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Rows of five seconds, a fifth of them of one key, and times on whole minutes in another trace."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(1)
    keys = np.where(chance.random(ROWS) < 0.2, 0, chance.integers(1, 300, ROWS))
    at_us = np.sort(chance.integers(0, 5_000_000, ROWS))
    key = pa.array([f"k{each}" for each in keys])
    write_trace(tmp_path / "x.trace", {"ts": at_us, "key": key})
    (tmp_path / "n.toml").write_text(NETWORK)
    (tmp_path / "fraud.toml").write_text(CHAIN)
    return tmp_path


def plain(text):
    return " ".join(text.replace("\u202f", " ").split())


@pytest.mark.parametrize("name", LINES)
def test_one_screen_begins_with_the_conclusion_of_the_document_and_all_has_everything(adapt, here, name):
    line = ("replay", "repartition" if name == "live" else name, "x.trace", *LINES[name].split())
    document = adapt.json(*line)
    first = adapt.done(*line).out
    said = plain(first)
    verdict = plain(document["summary"]["verdict"])
    assert said.startswith(f"Verdict: {verdict}")
    assert len(first.splitlines()) <= 24
    assert max(map(len, first.splitlines())) <= 80
    assert len(re.findall(r"\.(?: |$)", verdict)) <= 3
    assert first.count("──\n") == 1, "one table"
    everything = plain(adapt.done(*line, "--all").out)
    assert f"Verdict: {verdict}" in everything
    assert plain(document["summary"]["notes"] or "") in everything


def test_a_rebuild_is_recommended_by_the_mean_imbalances_of_the_summary(adapt, here):
    document = adapt.json("replay", "repartition", "x.trace", *LINES["repartition"].split())
    told, verdict = document["summary"], document["summary"]["verdict"]
    for name in ("mean_imbalance", "mean_imbalance_today", "mean_best_possible"):
        assert f"{told[name]:.3f}" in verdict
    assert f"{told['rebuilds']} rebuilds" in verdict
    pairs = [(row["imbalance"], row["imbalance_today"]) for row in document["periods"]]
    helps = sum(a < b for a, b in pairs) > sum(a > b for a, b in pairs)
    helps &= told["mean_imbalance"] <= 0.95 * told["mean_imbalance_today"]
    assert verdict.startswith("Rebuild every 500ms: " if helps else "Rebuilding every 500ms does not help: ")


def test_what_rebuilds_cannot_balance_is_said_to_be_no_help(adapt, here):
    """All rows are of one key, wherever it lies."""
    write_trace(here / "one.trace", {"ts": np.arange(1000) * 5_000, "key": pa.array(["k"] * 1000)})
    document = adapt.json("replay", "repartition", "one.trace", *LINES["repartition"].split())
    assert re.match("(Rebuilding every 500ms does not help|Nothing was rebuilt)", document["summary"]["verdict"])


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *(("flux", "--offered 0.3"), ("flux", "--offered 1.5")),
        *(("elastic", "--workers 2 --offered 0.1"), ("elastic", "--workers 1 --offered 0.9")),
    ],
)
def test_a_case_is_recommended_only_where_it_beats_today(adapt, here, name, more):
    document = adapt.json("replay", name, "x.trace", *LINES[name].split(), *more.split())
    (today, *others), verdict = document["cases"], document["summary"]["verdict"]
    assert duration(today["latency_p99"]) in verdict
    found = re.match(r"Use ([\w-]+):", verdict)
    if found is None:
        assert re.match(r"(Keep (today's|\d) |Moving partitions does not help: |Scaling does not help: )", verdict)
        assert name == "elastic" or all(row["capacity_share"] < 1.05 * today["capacity_share"] for row in others)
        return
    (row,) = (row for row in others if row["case"] == found[1])
    assert duration(row["latency_p99"]) in verdict
    dear = row.get("worker_time", 1) * 1.05 >= today.get("worker_time", 1)
    gains = row.get("capacity_share", 1) >= 1.05 * today.get("capacity_share", 1)
    assert row["latency_p99"] < today["latency_p99"] or gains or not dear


def test_the_plans_that_are_recommended_have_the_best_score_of_those_whose_queues_do_not_grow(adapt, here):
    document = adapt.json("replay", "fit", "x.trace", *LINES["fit"].split())
    best = document["summary"]["best"]
    assert document["summary"]["verdict"].startswith(f"Drop by the plans of {best}: ")
    calm = adapt.json("replay", "fit", "x.trace", *LINES["fit"].split(), "--speedup", "0.1")
    assert calm["summary"]["verdict"].startswith("Nothing to do: no tick is overloaded; ")


def test_more_workers_than_add_throughput_are_not_recommended(adapt, here):
    document = adapt.json("replay", "ordered", "x.trace", *LINES["ordered"].split())
    speeds = {row["workers"]: row["throughput"] for row in document["workers"]}
    use = int(re.search(r"(?:use|than) (\d) worker", document["summary"]["verdict"])[1])
    assert use == document["summary"]["break_even"]
    assert all(speed <= 1.05 * speeds[use] for workers, speed in speeds.items() if workers > use)


def test_the_own_rate_comes_first_and_the_recommended_scenario_has_the_numbers_of_the_table(adapt, here):
    document = adapt.json("replay", "compare", "x.trace", *LINES["compare"].split())
    verdict = document["summary"]["verdict"]
    assert verdict.startswith("At its own rate, ")
    (point,) = document["points"]
    if document["summary"]["advice"] not in (None, "static-uniform"):
        assert f"Use {document['summary']['advice']}: p99 {duration(point['latency_p99'])}" in verdict
    assert f"{point['wins']} of {point['seeds']} seeds" in verdict or "keeps up with all" in verdict


@pytest.mark.parametrize("name", ["flux", "elastic", "fit", "compare"])
def test_bursts_that_are_artefacts_of_stamps_are_said_in_the_result(adapt, here, monkeypatch, name):
    found = Finding("minute-of-hour", Severity.SEVERE, "Minute 05 of the hour has all rows in 84 hours.", "")
    monkeypatch.setattr("adapt.core.lint.findings.judged", lambda _: [found])
    caveat = f"Rates, and so latencies, are misleading: {found.evidence}"
    line = ("replay", name, "x.trace", *LINES[name].split())
    assert caveat in plain(adapt.done(*line).out)
    assert any(caveat in each for each in adapt.json(*line)["assumptions"])
    assert caveat not in adapt.done("replay", "repartition", "x.trace", *LINES["repartition"].split()).out
