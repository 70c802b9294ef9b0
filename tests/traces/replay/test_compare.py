"""Comparisons on disk: a run for each scenario, made once, wherever it is made."""

import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.core.mechanisms.cost_model import Wanted
from adapt.core.mechanisms.outcome import OUTCOME_COLUMNS
from adapt.core.mechanisms.scenarios import SCENARIOS, chosen
from adapt.core.mechanisms.sweep import Sweep
from adapt.core.stage.conditions.settings import Costs
from adapt.core.stage.input.speed import Speed
from adapt.core.stream import Weight
from adapt.traces.leftovers import leftovers
from adapt.traces.replay import compare as comparing
from adapt.traces.replay.compare import Comparison
from adapt.traces.replay.comparing import sweeping
from adapt.traces.replay.replay import replay
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store.manifest import write_manifest
from adapt.traces.store.runs import read_run
from adapt.traces.store.trace import open_trace
from tests.traces.small_traces import write_trace

ROWS = 2_000
WANTED = Wanted(4, costs=Costs(1e-3, 1e-4), per_worker=8, state=50)
SPEEDS = Speed(offered=0.6), Speed(offered=1.2)
NAMES = ("static-hybrid", "flux-load", "elastic-shed", "split-w-choices")


@pytest.fixture
def trace(tmp_path):
    """Some keys are hot, others now and then."""
    chance = np.random.default_rng(5)
    keys = np.where(chance.random(ROWS) < 0.3, 0, chance.zipf(1.3, ROWS) % 300)
    times = np.sort(chance.uniform(0, 1000, ROWS))
    columns = {"ts": (times * 1e6).astype(np.int64), "key": pa.array([f"k{key}" for key in keys])}
    return write_trace(tmp_path / "x.trace", columns)


@pytest.fixture
def made(monkeypatch):
    """The names of the scenarios that were run, as they were."""
    names = []
    run = comparing.run_scenario

    def counted(job):
        names.append(job.scenario.name)
        return run(job)

    monkeypatch.setattr(comparing, "run_scenario", counted)
    return names


def options(names=NAMES, wanted=WANTED, **said):
    return Comparison(wanted, chosen(names), **{"jobs": 1, **said})


def test_every_scenario_is_a_whole_run_and_the_comparison_has_its_row(trace, tmp_path, made):
    run = replay(trace, options(), tmp_path / "x.run")
    assert made == ["static-uniform", *NAMES]
    kept = read_run(tmp_path / "x.run")
    assert kept.as_data() == run.as_data()
    assert kept.mechanism == "compare"
    assert run.tables()["scenarios"].values("scenario") == made
    for name, row in zip(made, run.tables()["scenarios"].rows, strict=True):
        child = read_run(tmp_path / "x.run" / f"{name}.run")
        assert child.mechanism == "scenario"
        assert child.summary.rows[0] == row[: len(OUTCOME_COLUMNS)]
        assert child.manifest.made.inputs == [{"name": "x.trace", "content_hash": "c0ffee"}]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.run", "x.trace"]


def test_the_speed_is_that_at_which_the_busiest_channel_has_what_was_asked_for(trace):
    run = replay(trace, options(("static-uniform",), wanted=replace(WANTED, speed=Speed(offered=1.5))))
    told = run.summary().records()[0]
    uniform = run.tables()["scenarios"].records()[0]
    assert told["offered"] == pytest.approx(1.5)
    assert uniform["load"] == pytest.approx(1.5)
    assert uniform["processed"] == ROWS
    # it is as much longer at it than the rows take to come
    assert uniform["finished"] == pytest.approx(1.5 * told["seconds"], rel=0.05)


def acted(row):
    """Whether a mechanism did what it is there for."""
    name = row["scenario"]
    did = {
        "split": row["merge_tuples"] > 0,
        "flux": row["moves"] > 0,
        "rebuild": row["rescales"] > 0 and row["moves"] > 0,
        "elastic": row["rescales"] > 0 and row["workers_max"] > 1,
        "ds2": row["rescales"] > 0,
        "lag": row["rescales"] > 0,
        "shed": row["drop_rate"] > 0,
        "static": row["load"] > 0,
    }
    return all(did[kind] for kind in did if kind in name)


def test_every_mechanism_acts_and_no_row_is_forgotten(trace):
    """Rows are processed, shed or left; tuples that merge parts of keys are no rows."""
    rows = replay(trace, options((), replace(WANTED, state=Weight.COUNT))).tables()["scenarios"].records()
    assert [row["scenario"] for row in rows] == [one.name for one in SCENARIOS]
    assert [row["scenario"] for row in rows if not acted(row)] == []
    for row in rows:
        assert (row["processed"] + row["unprocessed"]) / (1 - row["drop_rate"]) == pytest.approx(ROWS)


def test_what_is_there_is_not_run_again(trace, tmp_path, made, monkeypatch):
    """Interrupted in the middle, it goes on; what is damaged, or made otherwise, is made again."""
    run = comparing.run_scenario

    def interrupted(job):
        if job.scenario.name == "elastic-shed":
            raise KeyboardInterrupt
        return run(job)

    out = tmp_path / "x.run"
    with monkeypatch.context() as patched:
        patched.setattr(comparing, "run_scenario", interrupted)
        with pytest.raises(KeyboardInterrupt):
            replay(trace, options(), out)
    assert made == ["static-uniform", "static-hybrid", "flux-load"]
    assert not out.exists()
    made.clear()
    told = []
    first = replay(trace, options(), out, progress=lambda what, done, _: told.append((what, done)))
    assert made == ["elastic-shed", "split-w-choices"]
    assert ("resuming after 3 finished scenarios", 3) in told
    made.clear()
    again = replay(trace, options(), out, force=True)
    assert made == []
    assert again.as_data() == first.as_data()
    whole = replay(trace, options())
    assert whole.as_data() == first.as_data()
    made.clear()
    intervals = out / "flux-load.run" / "intervals.parquet"
    intervals.write_bytes(intervals.read_bytes()[:-1] + b"x")
    replay(trace, options(), out, force=True)
    assert made == ["flux-load"]
    made.clear()
    replay(trace, options(wanted=replace(WANTED, seed=1)), out, force=True)
    assert len(made) == 5


def test_a_second_comparison_and_a_cleaning_leave_a_running_one_alone(trace, tmp_path, monkeypatch):
    """At each scenario of the first, the second is refused and nothing of the first is a leftover."""
    names, run = ("static-hybrid",), comparing.run_scenario
    refused = []

    def meanwhile(job):
        with pytest.raises(EnvironmentFailure, match=r"x\.run is being written by another run"):
            replay(trace, options(names), tmp_path / "x.run")
        refused.append(leftovers(tmp_path))
        return run(job)

    monkeypatch.setattr(comparing, "run_scenario", meanwhile)
    replay(trace, options(names), tmp_path / "x.run")
    assert refused == [[], []]
    assert len(read_run(tmp_path / "x.run").tables["scenarios"].rows) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.run", "x.trace"]


def test_a_comparison_writes_through_no_link(trace, tmp_path):
    (tmp_path / "aside").mkdir()
    (tmp_path / ".x.run.scenarios").symlink_to(tmp_path / "aside")
    with pytest.raises(EnvironmentFailure, match="is a link or a pipe; remove it"):
        replay(trace, options(()), tmp_path / "x.run")
    assert list((tmp_path / "aside").iterdir()) == []


def test_another_program_or_another_trace_makes_them_again(trace, tmp_path, made, monkeypatch):
    out = tmp_path / "x.run"
    replay(trace, options(("shed",)), out)
    made.clear()
    monkeypatch.setattr(comparing, "code_hash", lambda: "another")
    replay(trace, options(("shed",)), out, force=True)
    assert len(made) == 2
    made.clear()
    write_manifest(trace.path, replace(trace.manifest, content_hash="decaf0"))
    replay(open_trace(trace.path), options(("shed",)), out, force=True)
    assert len(made) == 2


def test_sustained_rates_and_the_demand_curve_are_kept_with_it(trace, tmp_path):
    run = replay(trace, options(("static-uniform",), sustained=(2, 4)), tmp_path / "x.run")
    rows = run.tables()["sustained"].records()
    assert [row["channels"] for row in rows] == [2, 4]
    for row in rows:
        assert row["sustainable"] <= 1.05 * row["even_bound"]
        assert row["sustainable"] == pytest.approx(row["bound"], rel=0.15)
    assert run.tables()["scenarios"].values("sustainable") == [rows[1]["sustainable"]]
    needed = [row["workers"] for row in run.tables()["demand"].records()]
    assert needed[0] == 2
    assert needed[-1] is None
    assert [table.title for table in run.shown()][2:] == ["Sustainable throughput", "Workers needed against load"]
    assert read_run(tmp_path / "x.run").as_data() == run.as_data()


def test_a_sweep_goes_on_where_it_was_interrupted(trace, tmp_path, monkeypatch):
    """Each outcome is kept as soon as it is there; a line that was cut off is run again."""
    run, keys = sweeping.run_case, []

    def counted(case):
        keys.append(case.key)
        if len(keys) == 5:
            raise KeyboardInterrupt
        return run(case)

    out, asked = (
        tmp_path / "x.run",
        options(("split-pkg",), sweep=Sweep(SPEEDS, seeds=3)),
    )
    monkeypatch.setattr(sweeping, "run_case", counted)
    with pytest.raises(KeyboardInterrupt):
        replay(trace, asked, out)
    kept = tmp_path / ".x.run.scenarios" / "outcomes" / "outcomes.jsonl"
    kept.write_text(kept.read_text()[:-9])
    first = keys[:4]
    whole = replay(trace, asked, out)
    assert keys[5] == first[3]
    assert not set(keys[6:]) & set(first)
    assert len(set(keys)) == len(keys) - 2
    keys.clear()
    again = replay(trace, asked, out, force=True)
    assert keys == []
    assert again.as_data() == whole.as_data() == read_run(out).as_data()
    monkeypatch.setattr(sweeping, "run_case", run)
    assert replay(trace, asked).as_data() == whole.as_data()


def test_a_case_of_a_sweep_is_the_run_with_that_load_and_seed(trace):
    """What is read once for many scenarios is what each reads for itself."""
    swept = replay(trace, options(("split-w-choices",), sweep=Sweep(SPEEDS, seeds=2)))
    for speed in SPEEDS:
        alone = [
            replay(trace, options(("split-w-choices",), replace(WANTED, speed=speed, seed=seed))) for seed in (0, 1)
        ]
        finding = next(each for each in swept.findings if each.point.offered == speed.offered)
        for name, outcomes in finding.race.runs.items():
            for outcome, run in zip(outcomes, alone, strict=True):
                (row,) = (row for row in run.outcomes.records() if row["scenario"] == name)
                assert outcome == row


def test_on_spark_and_in_other_processes_results_are_the_same(spark, trace, tmp_path):
    names = ("flux-shed",)
    here = replay(trace, options(names))
    there = replay(trace, options(names, spark=SparkOptions()), tmp_path / "x.run")
    assert there.as_data() == here.as_data()
    assert json.dumps(read_run(tmp_path / "x.run").as_data()) == json.dumps(here.as_data())


@pytest.mark.skipif(not os.environ.get("ADAPT_SOAK"), reason="starts processes; ADAPT_SOAK=1 runs it")
def test_in_other_processes_results_are_the_same(trace):
    here = replay(trace, options())
    assert replay(trace, options(jobs=2)).as_data() == here.as_data()
