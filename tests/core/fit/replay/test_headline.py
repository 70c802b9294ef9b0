"""The planner that the headline names, and shares of the best score, against closed forms."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.fit.network.names import DropPlanner, Flow, OperatorKind
from adapt.core.fit.network.network import ColumnEquals, Input, Network, Node, Operator, Output
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.replay import FitOptions, FitRun, replay_fit

SECOND = 1_000_000
NONE, EXACT, GREEDY = DropPlanner.NONE, DropPlanner.EXACT, DropPlanner.GREEDY_LOCAL


def replayed(counts, planners, *, cost=0.01, selectivity=1.0, lag=0, headroom=0.0, flow=Flow.TUPLES) -> FitRun:
    """Rows of one input, evenly spaced within each second, through one operator."""
    network = Network(
        (Node("A"),),
        (Input("in", ColumnEquals("side", 0)),),
        (Operator("op", "A", OperatorKind.MAP, ("in",), cost, selectivity),),
        (Output("out", "op"),),
    )
    at_us = np.concatenate([tick * SECOND + (np.arange(rows) * SECOND) // rows for tick, rows in enumerate(counts)])
    rows = pa.table({"ts": pa.array(at_us, pa.timestamp("us", "UTC")), "side": np.zeros(len(at_us), int)})
    settings = SheddingSettings(lag_ticks=lag, headroom=headroom, min_rate_change=0.0)
    return replay_fit(
        rows.to_batches, Binding(network, SECOND), FitOptions(planners, settings, flow=flow), clock=lambda: 0.0
    )


def told(run) -> tuple[str, str, dict[str, float]]:
    (summary,) = run.summary().records()
    shares = {row["planner"]: row["optimum_share"] for row in run.tables()["planners"].records()}
    return str(summary["best"]), str(summary["verdict"]), shares


@pytest.mark.parametrize("flow", list(Flow))
def test_a_plan_whose_queue_grows_is_not_recommended(flow: Flow) -> None:
    best, verdict, shares = told(replayed([110] * 40, (NONE, EXACT), lag=1, headroom=0.05, flow=flow))
    assert best == "exact"
    assert verdict.startswith("Shed load with exact")
    assert f"none {shares['none']:.1%} (queues grow to 4" in verdict
    assert "Plans leave 5.0% of every node and link free" in verdict
    alone, verdict, _ = told(replayed([110] * 40, (NONE,), flow=flow))
    assert (alone, "queues grow in the overloaded ticks; add --planner exact." in verdict) == ("none", True)


def test_results_more_than_a_tick_late_do_not_count() -> None:
    # 150 tuples arrive in each of 5 s, of which 100 can be served.
    for flow in Flow:
        (share,) = told(replayed([150] * 5, (NONE,), flow=flow))[2].values()
        assert share == pytest.approx(300 / 500, abs=0.01), "a row of second a waits a / 2, so rows of 2 s count"


@pytest.mark.parametrize(("rows", "selectivity"), [(1, 1 / 3), (2, 0.05), (30, 0.01)])
def test_an_output_of_less_than_a_tuple_a_tick_loses_nothing(rows: int, selectivity: float) -> None:
    run = replayed([rows] * 300, (NONE, EXACT), selectivity=selectivity)
    assert list(told(run)[2].values()) == pytest.approx([1.0, 1.0])


def test_a_burst_of_a_tick_that_no_plan_knew_is_not_held_against_it() -> None:
    best, verdict, _ = told(replayed([50, 150, 150, 150, 150, 150, 50, 50], (NONE, GREEDY, EXACT), lag=1, headroom=0.2))
    assert best in ("exact", "greedy-local")
    assert "overload a node or link in 12.5% of the ticks; queues up to" in verdict
