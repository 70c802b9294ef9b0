"""Scenarios beside each other: marks, who is beaten, demand curves and advice, against plain definitions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.fit.network.names import DropPlanner
from adapt.core.mechanisms.comparison import (
    MARKED,
    SUSTAINED_COLUMNS,
    ComparisonRun,
    best_of,
    demand_table,
    outcome_table,
    pareto,
    with_best,
)
from adapt.core.mechanisms.outcome import OUTCOME_COLUMNS
from adapt.core.mechanisms.recommendation import Frame, advice_of
from adapt.core.mechanisms.scenarios import BASELINE, Scenario, Static
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.input.offered_load import OwnRate
from adapt.core.table import Table

FRAME = Frame(rows=10_000, channels=4, pool=8, speedup=100.0, offered=1.2, work=3.0, last_s=100.0, top_share=0.1)
USUAL = {
    "throughput": 100.0,
    "latency_p50": 0.1,
    "latency_p95": 0.2,
    "latency_p99": 0.5,
    "drop_rate": 0.0,
    "worker_time": 400.0,
    "idle_workers": 1.0,
    "imbalance_max": 1.5,
    "state_moved_bytes": 0,
    "paused": 0.0,
    "rescales": 0,
    "drain": 0.0,
    "merge_tuples": 0,
}


def outcomes(**scenarios):
    """A table of scenarios with what is said of each, the baseline first."""
    rows = [{**USUAL, "scenario": name.replace("_", "-"), **said} for name, said in scenarios.items()]
    return outcome_table([[row.get(column.name) for column in OUTCOME_COLUMNS] for row in rows])


def plainly(text):
    return text.replace("\u202f", " ")


def advised(frame=FRAME, **scenarios):
    known = {
        BASELINE: Scenario(BASELINE),
        "static-hybrid": Scenario("static-hybrid", Static.HYBRID),
        "split-pkg": Scenario("split-pkg", split=Splitting.PKG),
        "rebuild": Scenario("rebuild", rebuilds=True),
        "shed": Scenario("shed", sheds=True),
        "shed-d-fit": Scenario("shed-d-fit", drops=DropPlanner.D_FIT),
    }
    return advice_of(outcomes(**scenarios).records(), known, frame)


amounts = st.lists(
    st.tuples(st.integers(1, 4), st.one_of(st.none(), st.integers(1, 4)), st.integers(0, 2)), min_size=1, max_size=8
)


@given(amounts)
def test_none_that_is_not_beaten_is_missing_and_none_that_is_beaten_is_there(points):
    table = outcomes(
        **{
            f"s{at}": {"worker_time": cost, "latency_p99": p99, "drop_rate": shed / 4}
            for at, (cost, p99, shed) in enumerate(points)
        }
    )
    front = pareto(table)
    filled = [(cost, 99 if p99 is None else p99, shed) for cost, p99, shed in points]
    for at, one in enumerate(filled):
        beaten = [
            all(a <= b for a, b in zip(other, one, strict=True)) and any(a < b for a, b in zip(other, one, strict=True))
            for other in filled
        ]
        assert (at in front) != any(beaten)


def test_the_best_of_each_column_is_marked_unless_most_are():
    fast = {"throughput": 200.0, "latency_p99": 0.4}
    table = outcomes(static_uniform={}, a=fast, b={"latency_p99": 0.4008, "drop_rate": 0.1}, c={"latency_p99": 0.7})
    best = best_of(table)
    assert best["throughput"] == {1}
    assert best["latency_p99"] == {1}, "what drops rows is not the best for that"
    assert best["drop_rate"] == set()
    assert set(best) == set(MARKED)
    assert with_best(table).values("best") == ["", "throughput, latency_p99", "", ""]


def test_a_demand_curve_takes_the_fewest_workers_that_sustain_a_load():
    rows = [("a", 2, 50.0, 1.0, 0.0, 0.0, 1), ("a", 4, 120.0, 1.0, 0.0, 0.0, 1), ("b", 2, None, None, 0.0, 0.0, 1)]
    table = demand_table(Table.from_rows("Sustained", SUSTAINED_COLUMNS, rows), 100.0)
    needed = {(row["scenario"], row["load"]): row["workers"] for row in table.records()}
    assert [needed["a", load] for load in (0.25, 0.5, 0.75, 1.0, 1.25, 2.0)] == [2, 2, 4, 4, None, None]
    assert all(workers is None for (name, _), workers in needed.items() if name == "b")


def test_a_stream_on_which_uniform_keeps_up_is_left_alone():
    found = advised(static_uniform={}, static_hybrid={"latency_p99": 0.1})
    assert found.scenario == BASELINE
    assert "Nothing to do: static-uniform keeps up, p99 500 ms; static-hybrid is faster" in plainly(found.sentence)


def test_of_those_that_keep_up_the_simplest_of_the_cheapest_and_fastest_is_taken():
    behind = {"latency_p99": 20.0, "drain": 25.0, "worker_time": 500.0}
    rebuilt = {"latency_p99": 0.5, "state_moved_bytes": 2048, "rescales": 3}
    split = {"latency_p99": 0.1, "worker_time": 900.0}
    found = advised(static_uniform=behind, rebuild=rebuilt, static_hybrid={"latency_p99": 0.55}, split_pkg=split)
    assert found.scenario == "static-hybrid"
    assert "Use static-hybrid: p99 550 ms instead of 20 s" in found.sentence.replace("\u202f", " ")
    assert "split-pkg is faster" in found.sentence
    alone = advised(static_uniform=behind, rebuild=rebuilt)
    assert "3 times and moves 2.0 KiB of state" in plainly(alone.sentence)


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        ({"top_share": 0.5}, "the hottest key alone needs 1.50 workers"),
        ({"work": 5.0}, "the rows need 5.0 workers on average, more in bursts, and there are 4"),
        ({}, "rows come in bursts"),
        (
            {"own": OwnRate(1.0, 0.03, 0.071, 60.0)},
            "the rows need 7.1 workers in the busiest hundredth of the stream and 3.0 on average, and there are 4",
        ),
    ],
)
def test_where_nothing_keeps_up_that_is_said_and_why(frame, why):
    behind = {"latency_p99": 20.0, "drain": 25.0}
    found = advised(replace(FRAME, **frame), static_uniform=behind, static_hybrid={**behind, "latency_p99": 18.0})
    assert found.scenario is None
    assert why in found.sentence
    assert "none is faster than static-uniform" in found.sentence
    better = {
        "split_pkg": {"latency_p99": 11.0},
        "static_hybrid": {"latency_p99": 15.0},
        "shed": {"drop_rate": 0.2, "latency_p99": 0.1},
    }
    found = advised(replace(FRAME, **frame), static_uniform=behind, **better)
    assert found.scenario == "split-pkg"
    assert "without splitting keys, the best is static-hybrid" in found.sentence
    assert "shed drops 20 % of them" in found.sentence


def test_the_need_at_the_own_rate_comes_before_the_stress():
    frame = replace(FRAME, own=OwnRate(1.0, 0.03, 0.071, 60.0))
    assert frame.need.startswith("At its own rate, 1 rows/s, the trace needs 1 worker, busy 3 % of the time")
    assert "; replayed 100 times as fast, the busiest of 4 workers of static-uniform is offered 1.20 " in frame.need
    assert FRAME.need == ""


def test_what_drops_rows_is_recommended_only_for_want_of_others_and_with_what_it_loses():
    behind = {"latency_p99": 20.0, "drain": 25.0, "worker_time": 500.0}
    shed = {"latency_p99": 0.01, "drop_rate": 0.008, "worker_time": 300.0, "messages": 1200}
    found = advised(static_uniform=behind, rebuild={"latency_p99": 0.9, "rescales": 3}, shed_d_fit=shed)
    assert found.scenario == "rebuild"
    faster = "shed-d-fit is faster, p99 10 ms for 5 min of worker time and 0.8 % of the rows dropped."
    assert faster in plainly(found.sentence)
    found = advised(static_uniform=behind, rebuild=behind, shed_d_fit=shed)
    assert found.scenario == "shed-d-fit"
    assert "it drops 0.8 % of the rows, planned by 1,200 messages" in found.sentence
    found = advised(static_uniform=behind, rebuild=behind, shed_d_fit={**shed, "drop_rate": 0.2})
    assert found.scenario is None
    assert "shed-d-fit drops 20 % of them, p99 10 ms, planned by 1,200 messages" in plainly(found.sentence)
    calm = advised(static_uniform={}, shed_d_fit=shed)
    assert calm.scenario == BASELINE
    assert "shed-d-fit" not in calm.sentence


def test_a_run_tells_what_it_has():
    table = outcomes(static_uniform={}, shed={"drop_rate": 0.1})
    none = Table.from_rows("Sustained", SUSTAINED_COLUMNS, [])
    run = ComparisonRun(
        FRAME,
        table,
        none,
        (Scenario(BASELINE), Scenario("shed", sheds=True)),
        {},
    )
    assert list(run.tables()) == ["scenarios"]
    assert run.as_data()["summary"]["advice"] == BASELINE
    assert [table.title for table in run.shown()] == ["Scenarios", "Rescaling and migration"]
    assert "<table>" in run._repr_html_()
    assert [row[0] for row in run.leading().rows] == [BASELINE, "shed"]
    assert run.summary().records()[0]["verdict"] == run.conclusion()
