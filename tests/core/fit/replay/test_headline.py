"""The planner that the headline names, and shares of the best score, against closed forms."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.fit.network.names import DropPlanner, Flow, Grid, OperatorKind
from adapt.core.fit.network.network import ColumnEquals, Input, Network, Node, Operator, Output
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.solver import Observed
from adapt.core.fit.registry import PRECOMPUTED, planner_of
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.replay import FitRun, replay_fit
from adapt.core.phrases import percent
from tests.core.fit.networks import chains
from tests.core.fit.options import fit_options, planner_options

SECOND = 1_000_000
NONE, EXACT, GREEDY = DropPlanner.NONE, DropPlanner.EXACT, DropPlanner.GREEDY_LOCAL


def replayed(
    counts, planners, *, cost=0.01, selectivity=1.0, lag=0, headroom=0.0, flow=Flow.TUPLES, **options
) -> FitRun:
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
    asked = fit_options(planners, settings, flow=flow, **options)
    return replay_fit(rows.to_batches, Binding(network, SECOND), asked, clock=lambda: 0.0)


def told(run) -> tuple[str, str, dict[str, float]]:
    (summary,) = run.summary().records()
    shares = {row["planner"]: row["optimum_share"] for row in run.tables()["planners"].records()}
    return str(summary["best"]), " ".join([run.conclusion(), *run.notes()]), shares


@pytest.mark.parametrize("flow", list(Flow))
def test_a_plan_whose_queue_grows_is_not_recommended(flow: Flow) -> None:
    best, verdict, shares = told(replayed([110] * 40, (NONE, EXACT), lag=1, headroom=0.05, flow=flow))
    assert best == "exact"
    assert verdict.startswith("Drop by the plans of exact")
    assert f"none {percent(shares['none'])} (queues grow to 4" in verdict
    assert shares["none"] > 0.99, "it serves all that it can"
    assert "Plans leave 5 % of every node and link free" in verdict
    alone, verdict, _ = told(replayed([110] * 40, (NONE,), flow=flow))
    assert (alone, "queues grow in the overloaded ticks; add planner exact." in verdict) == ("none", True)


def test_results_more_than_ten_ticks_late_do_not_count() -> None:
    # 150 tuples arrive in each of 40 s, of which 100 can be served: a row of second a waits a / 2.
    for flow in Flow:
        (share,) = told(replayed([150] * 40, (NONE,), flow=flow))[2].values()
        assert share == pytest.approx(20 * 150 / 4000, abs=0.002), "rows of the first 20 s count"


@pytest.mark.parametrize(("rows", "selectivity"), [(1, 1 / 3), (2, 0.05), (30, 0.01)])
def test_an_output_of_less_than_a_tuple_a_tick_loses_nothing(rows: int, selectivity: float) -> None:
    run = replayed([rows] * 300, (NONE, EXACT), selectivity=selectivity)
    assert list(told(run)[2].values()) == pytest.approx([1.0, 1.0])


def test_a_burst_of_a_tick_that_no_plan_knew_is_not_held_against_it() -> None:
    best, verdict, _ = told(replayed([50, 150, 150, 150, 150, 150, 50, 50], (NONE, GREEDY, EXACT), lag=1, headroom=0.2))
    assert best in ("exact", "greedy-local")
    assert "overload a node or link in 12.5 % of the ticks." in verdict


@pytest.mark.parametrize("grid", list(Grid))
def test_plans_of_a_quiet_part_keep_what_fits_at_the_first_overload_and_promise_nothing(grid: Grid) -> None:
    run = replayed([30] * 20 + [150] * 20, PRECOMPUTED, flow=Flow.FLUID, learn=0.5, grid=grid)
    _, verdict, shares = told(run)
    assert list(shares.values()) == pytest.approx([1.0] * len(PRECOMPUTED)), "one input: all that fits"
    for row in run.tables()["planners"].records():
        planned_exactly = row["planner"] == "c-fit" and grid is Grid.GUARANTEED
        assert (row["epsilon"] is None) == (not planned_exactly)
        said = f"{row['planner']}: nothing is proved of its plans for overloaded rates above those that they cover."
        assert (said in verdict) == (not planned_exactly)


def test_plans_outside_their_box_keep_what_the_box_keeps_and_overload_nothing() -> None:
    network, box = chains([(0.01,), (0.01,)]), np.array([30.0, 100.0])
    beyond = np.array([[200.0, 10.0], [40.0, 5000.0], [300.0, 300.0], [29.0, 500.0]])
    wiring = Wiring.from_network(network)
    for name in PRECOMPUTED:
        options = planner_options(max_rates=box, workload=Observed(box[None]), grid=Grid.SAFE)
        planned = planner_of(name, network, options).plan(beyond)
        flows = wiring.flows(beyond, planned.keeps)
        assert wiring.uses(flows).max() <= 1 + 1e-9, name
        assert (wiring.scores(flows) >= 0.9 * np.minimum(np.minimum(beyond, box).sum(axis=1), 100)).all(), name
