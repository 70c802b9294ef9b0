"""A stream through a query network, with several planners over the same rows."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit import control
from adapt.core.fit.network.names import DropPlanner, Flow, OperatorKind
from adapt.core.fit.network.network import ColumnEquals, Input, Network, Node, Operator, Output
from adapt.core.fit.network.settings import NodeQueue, SheddingSettings
from adapt.core.fit.registry import PLANNERS
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.replay import replay_fit
from adapt.core.fit.replay.tables import shedders_table
from adapt.core.run import run_as_data
from tests.core.fit.options import fit_options

MAP = OperatorKind.MAP
NETWORK = Network(
    (Node("A"), Node("B")),
    tuple(Input(f"in{at}", ColumnEquals("side", at)) for at in range(2)),
    tuple(
        Operator(f"{node}{at}", node, MAP, (f"in{at}" if node == "A" else f"A{at}",), cost)
        for at, costs in enumerate([(0.001, 0.003), (0.002, 0.001)])
        for node, cost in zip("AB", costs, strict=True)
    ),
    tuple(Output(f"out{at}", f"B{at}") for at in range(2)),
)
"""Figure 1, with tuples a thousand times as cheap."""

NOW = SheddingSettings(lag_ticks=0, headroom=0.0, min_rate_change=0.0)


def stream(seconds, seed=1, low=0, high=900):
    """Rows of two sides at rates that change every second."""
    chance = np.random.default_rng(seed)
    counts = chance.integers(low, high, (seconds, 2))
    at_us = [np.sort(chance.integers(at * 10**6, (at + 1) * 10**6, each.sum())) for at, each in enumerate(counts)]
    sides = [chance.permutation(np.repeat([0, 1], each)) for each in counts]
    table = pa.table(
        {"ts": pa.array(np.concatenate(at_us), pa.timestamp("us", "UTC")), "side": pa.array(np.concatenate(sides))}
    )
    return lambda: table.to_batches(5000)


def still():
    return 0.0


def replay(planners, settings=NOW, batches=None, **options):
    return replay_fit(
        batches or stream(20),
        Binding(NETWORK, settings.tick_us),
        fit_options(planners, settings, **options),
        clock=still,
    )


def test_all_planners_run_over_one_trace_and_none_beats_the_optimum_as_fluid() -> None:
    run = replay(tuple(PLANNERS), flow=Flow.FLUID)
    shares = {row["planner"]: row["optimum_share"] for row in run.tables()["planners"].records()}
    assert set(shares) == {name.value for name in PLANNERS}
    assert shares["exact"] == pytest.approx(1, rel=1e-9)
    assert shares["lp"] == pytest.approx(1, rel=1e-9)
    assert all(share <= 1 + 1e-9 for share in shares.values())
    assert shares["none"] < shares["greedy-local"] < 1
    assert shares["solver"] >= 1 - NOW.epsilon
    sent = {row["planner"]: row["message_bytes"] for row in run.tables()["planners"].records()}
    assert {name for name, size in sent.items() if not size} == {"none", "greedy-local"}, "all others coordinate"


def test_the_price_of_coordination_in_the_docs_is_measured() -> None:
    """`docs/shedding.md`: what coordination costs."""
    planners = tuple(map(DropPlanner, ("greedy-local", "exact", "solver", "d-fit", "d-fit-cuts")))
    shares = {}
    for delay_s in (None, 0.2, 40 * 3600.0):
        run = replay(planners, flow=Flow.FLUID, delay_s=delay_s)
        rows = {row["planner"]: row for row in run.tables()["planners"].records()}
        shares[delay_s] = {name: round(100 * row["optimum_share"], 1) for name, row in rows.items()}
        if delay_s is None:
            sent = {name: (row["messages"], row["message_bytes"]) for name, row in rows.items()}
            of_exact = rows["exact"]
            topics = [row["bytes"] for row in run.tables()["traffic"].records() if row["planner"] == "exact"]
    assert sent == {
        "greedy-local": (0, 0),
        "exact": (41, 1696),
        "solver": (42, 9784),
        "d-fit": (3, 7404),
        "d-fit-cuts": (2, 188),
    }
    assert (of_exact["coordination"], sum(topics)) == ("coordinator", 1696)
    assert of_exact["messages_per_s"] == pytest.approx(41 / 20)
    assert of_exact["bytes_per_change"] == pytest.approx(1696 / of_exact["changes"])
    assert shares[None]["exact"] == 100
    assert shares[None]["solver"] == 99.3
    assert shares[0.2] | {"exact": 78.7, "solver": 78.0, "d-fit-cuts": 99.3} == shares[0.2]
    assert set(shares[40 * 3600.0].values()) == {86.0}


def test_shedders_are_listed_by_node() -> None:
    run = replay((DropPlanner.NONE, DropPlanner.GREEDY_LOCAL, DropPlanner.EXACT))
    (shedders,) = shedders_table(run.tables()["drops"])
    found = {(row["planner"], row["node"], row["arc"], row["drop"]) for row in shedders.records()}
    assert {(planner, node) for planner, node, *_ in found} == {
        ("greedy-local", "A"),
        ("greedy-local", "B"),
        ("exact", "A"),
    }
    assert ("greedy-local", "B", "A0 -> B0", "random") in found
    dropped = sum(row["dropped"] for row in shedders.records() if row["planner"] == "exact")
    assert dropped == run.outcomes[2].total("dropped").sum()


def test_with_coins_the_exact_plan_comes_near_the_optimum_and_the_unshed_queues_grow() -> None:
    run = replay((DropPlanner.NONE, DropPlanner.EXACT))
    none, exact = run.tables()["planners"].records()
    assert exact["optimum_share"] > 0.95
    assert exact["wait_max"] < 0.3 < 1 < none["wait_max"]
    assert exact["latency_p99"] < none["latency_p99"]
    assert none["drop_rate"] == 0 < exact["drop_rate"]
    assert exact["plans"] >= 2
    assert run.outcomes[1].overloaded.sum() == 0 < run.outcomes[0].overloaded.sum()


def test_a_planner_throws_the_same_coins_beside_another() -> None:
    run = replay((DropPlanner.LP, DropPlanner.EXACT))
    again = replay((DropPlanner.LP,)).outcomes[0]
    assert again.scores.tolist() == run.outcomes[0].scores.tolist()


def test_a_plan_of_yesterday_overloads_nodes_and_headroom_helps() -> None:
    rows = stream(20, low=600, high=700)
    late, careful = (
        replay((DropPlanner.EXACT,), SheddingSettings(lag_ticks=1, headroom=room), rows).outcomes[0]
        for room in (0, 0.3)
    )
    assert careful.overloaded.sum() == 1, "of the first tick, no rates are known"
    assert late.overloaded.mean() > 0.3


def test_nodes_whose_tables_may_be_off_tell_less_when_capacities_are_corrected() -> None:
    steady = stream(20, low=700, high=701)
    settings = SheddingSettings(lag_ticks=1, headroom=0.0, feedback=True)
    exact, near = (
        replay((DropPlanner.D_FIT,), settings, steady, cost_scale=1.2, distance=distance).outcomes[0]
        for distance in (0.0, 0.3)
    )
    assert near.sent.rows < exact.sent.rows
    scores = [sum(tick.score for tick in outcome.ticks) for outcome in (exact, near)]
    assert scores[1] >= 0.7 * scores[0]


@pytest.mark.parametrize("planner", [DropPlanner.D_FIT, DropPlanner.D_FIT_CUTS])
def test_until_messages_arrive_nodes_lose_score_or_if_they_trust_each_other_are_overloaded(planner) -> None:
    steady = stream(16, low=700, high=701)
    known, careful, trusting = (
        replay((planner,), batches=steady, flow=Flow.FLUID, delay_s=delay_s, trust_upstream=trust_upstream).outcomes[0]
        for delay_s, trust_upstream in ((None, False), (2.5, False), (2.5, True))
    )
    assert known.stale == 0 < careful.stale < 16
    stale = np.array([decision.stale for decision in careful.decisions])
    assert not stale[-1]
    assert careful.scores[stale].max() < 0.95 * known.scores.min()
    assert careful.scores[~stale] == pytest.approx(known.scores[~stale], rel=0.05)
    assert not careful.overloaded.any()
    assert trusting.overloaded[0]
    assert not trusting.overloaded[-1]
    for outcome in (careful, trusting):
        assert sum(decision.sent.size for decision in outcome.decisions) == outcome.sent.size > 0


@pytest.mark.parametrize("lag", [0, 2])
def test_plans_made_for_several_ticks_together_are_void_once_capacities_are_corrected(monkeypatch, lag) -> None:
    settings = SheddingSettings(lag_ticks=lag, headroom=0.0, feedback=True, smoothing=0.7)
    together = replay((DropPlanner.EXACT,), settings, stream(40), cost_scale=1.3).outcomes[0]
    monkeypatch.setattr(control, "MAX_TOGETHER", 1)
    one_by_one = replay((DropPlanner.EXACT,), settings, stream(40), cost_scale=1.3).outcomes[0]
    for before, after in zip(one_by_one.decisions, together.decisions, strict=True):
        assert before.rates.tolist() == after.rates.tolist()
        assert before.keeps == pytest.approx(after.keeps, abs=1e-9)


def test_nodes_that_drop_at_full_queues_keep_latency_short_without_a_plan() -> None:
    plain = replay((DropPlanner.NONE,)).outcomes[0]
    refusing = replay((DropPlanner.NONE,), queue=NodeQueue(50, 0.5)).outcomes[0]
    assert refusing.total("queue_drops").sum() > 0 == plain.total("queue_drops").sum()
    assert refusing.latency_s(0.99) < 0.3 < plain.latency_s(0.99)


def test_the_run_is_tables_and_data() -> None:
    run = replay((DropPlanner.EXACT,))
    tables = run.tables()
    assert len(tables["ticks"].rows) == 20
    assert len(tables["nodes"].rows) == 40
    assert all(row["dropped"] <= row["offered"] for row in tables["drops"].records())
    assert sum(row["dropped"] for row in tables["drops"].records()) == run.outcomes[0].total("dropped").sum()
    assert run.as_data() == run_as_data("fit", run.parameters, run.summary(), tables)
    assert run.summary().records()[0]["verdict"] == run.conclusion()
    assert run.conclusion().startswith("Drop by the plans of exact: ")


def test_options_out_of_range_are_refused() -> None:
    for wrong in (
        {"planners": ()},
        {"planners": (DropPlanner.LP,), "cost_scale": 0.0},
        {"planners": (DropPlanner.LP,), "seed": -1},
        {"planners": (DropPlanner.LP,), "speedup": 0.0},
        {"planners": (DropPlanner.LP,), "flow": Flow.FLUID, "queue": NodeQueue(5)},
    ):
        with pytest.raises(UsageError):
            fit_options(**wrong)


def from_zero(seconds, **rates):
    """A stream whose first row comes at 0, as a table."""
    table = pa.Table.from_batches(stream(seconds, **rates)())
    return table.set_column(
        0, "ts", pc.subtract(table["ts"], pc.min(table["ts"]).cast(pa.int64()).cast("duration[us]"))
    )


CALM, WILD = from_zero(8, high=200), from_zero(8, low=400)
BOTH = pa.concat_tables([CALM, WILD.set_column(0, "ts", pc.add(WILD["ts"], pa.scalar(8_000_000, "duration[us]")))])


@pytest.mark.parametrize("name", [DropPlanner.SOLVER, DropPlanner.SOLVER_W, DropPlanner.C_FIT, DropPlanner.D_FIT])
def test_plans_from_the_first_part_never_overload_a_node_in_the_rest(name: DropPlanner) -> None:
    run = replay((name, DropPlanner.EXACT), batches=BOTH.to_batches, learn=0.5, flow=Flow.FLUID)
    assert len(run.rates) == 8
    assert run.counts.by_tick.sum() == len(WILD)
    assert (run.rates > run.covered).any(axis=1).sum() == 8
    assert not any(outcome.overloaded.any() for outcome in run.outcomes)
    assert run.outcomes[0].scores.sum() <= run.outcomes[1].scores.sum()
    assert "know the first 50% of the trace" in " ".join(run.notes())
    alone = replay((name, DropPlanner.EXACT), batches=WILD.to_batches, flow=Flow.FLUID)
    assert [row["sample"] for row in run.tables()["planners"].records()] == ["out-of-sample", None]
    assert [row["sample"] for row in alone.tables()["planners"].records()] == ["in-sample", None]


def test_a_replay_of_the_rest_is_that_of_the_rest_alone() -> None:
    rest = replay((DropPlanner.EXACT,), batches=BOTH.to_batches, learn=0.5, flow=Flow.FLUID)
    alone = replay((DropPlanner.EXACT,), batches=WILD.to_batches, flow=Flow.FLUID)
    assert np.array_equal(rest.rates, alone.rates)
    assert np.array_equal(rest.outcomes[0].scores, alone.outcomes[0].scores)


@pytest.mark.parametrize(
    ("given", "said"), [({"learn": 1.0}, "below 1"), ({"learn": 0.01}, "less than one"), ({"margin": 0.0}, "above 0")]
)
def test_what_plans_cannot_know_is_refused(given: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replay((DropPlanner.C_FIT,), **given)
