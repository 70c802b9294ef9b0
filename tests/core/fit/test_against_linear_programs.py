"""Replays of random networks against linear programs that scipy solves: kept, overloaded, promised, advised."""

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import DropPlanner, Flow, OperatorKind
from adapt.core.fit.network.network import ColumnEquals, Window
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.registry import PRECOMPUTED, planner_of
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.replay import FitRun, replay_fit
from adapt.core.fit.running.window_drop import WindowAware, windows_of_arcs
from tests.core.fit.networks import DELAY, any_network
from tests.core.fit.options import fit_options
from tests.core.fit.oracles import scipy_score

SEEDS = range(300 if os.environ.get("ADAPT_SOAK") else 6)
TICKS, SECOND = 12, 1_000_000
DIRECT = (DropPlanner.NONE, DropPlanner.PROPORTIONAL, DropPlanner.GREEDY_LOCAL, DropPlanner.LP, DropPlanner.EXACT)
SETTINGS = SheddingSettings(epsilon=0.2, lag_ticks=0, headroom=0.0, min_rate_change=0.0)


def windowed(seed):
    """A network with links and joins, some of whose operators are aggregates; inputs read rows by number."""
    network, random = any_network(seed), np.random.default_rng([seed, 12])
    operators = (
        replace(each, kind=OperatorKind.AGGREGATE, window=Window(4 * SECOND, SECOND, timed=True))
        if each.kind is DELAY and random.random() < 0.3
        else each
        for each in network.operators
    )
    unit = 1000.0 if max(each.cost for each in network.operators) > 100 else 1.0
    inputs = (
        replace(each, stream=ColumnEquals("of", at), scale=float(random.choice([0.05, 0.25, 1.0])) / unit)
        for at, each in enumerate(network.inputs)
    )
    return replace(network, inputs=tuple(inputs), operators=tuple(operators))


def replayed(seed, learn) -> tuple[FitRun, np.ndarray]:
    """A replay of rates that change in every tick, and these rates."""
    network, random = windowed(seed), np.random.default_rng([seed, 13])
    counts = random.integers(0, 12, (TICKS, len(network.inputs)))
    counts[0] = np.maximum(counts[0], 1)
    counts[-1, 0] = 1  # the last tick has a row
    at_us = np.repeat(np.arange(TICKS) * SECOND, counts.sum(axis=1))
    of = np.concatenate([np.repeat(np.arange(counts.shape[1]), each) for each in counts])
    rows = pa.table({"ts": pa.array(at_us, pa.timestamp("us", "UTC")), "of": of}).to_batches()
    binding = Binding(network, SECOND)

    def run(planners):
        options = fit_options(planners, SETTINGS, flow=Flow.FLUID, max_plans=300, learn=learn)
        return replay_fit(lambda: rows, binding, options, clock=lambda: 0.0)

    try:
        made = run((*DIRECT, *PRECOMPUTED))
    except UsageError:  # no table fits, or nodes form a cycle
        made = run(DIRECT)
    return made, (counts * [each.scale for each in network.inputs])[int(learn * TICKS) :]


def walked(network, rates, keeps):
    """Utilization of every node and link, and the score, at shares by arc: tuple by tuple's way, in plain loops."""
    flow, used, score = dict(zip([each.name for each in network.inputs], rates, strict=True)), {}, 0.0
    sources = {each.name: each for each in network.sources}
    operators = {each.name: each for each in network.operators}
    weights = {each.name: each.weight for each in network.outputs}
    limits = {each.name: each.capacity for each in network.nodes}
    limits |= {(each.source, each.target): each.bytes_per_s for each in network.links}
    for arc, keep in zip(Wiring.from_network(network).arcs, keeps, strict=True):
        kept = flow.get(arc.source, 0.0) * keep
        if arc.port < 0:
            score += weights[arc.target] * kept
            continue
        operator = operators[arc.target]
        windows = operator.join_windows
        pairs = windows[1 - arc.port] if windows else 1.0
        flow[arc.target] = flow.get(arc.target, 0.0) + kept * operator.selectivity * pairs
        used[operator.node] = used.get(operator.node, 0.0) + kept * operator.cost
        way = (network.node_of(sources[arc.source]), operator.node)
        if way in limits:
            used[way] = used.get(way, 0.0) + kept * (sources[arc.source].out_bytes or 0.0)
    return max((load / limits[at] for at, load in used.items()), default=0.0), score


@pytest.mark.parametrize("learn", [0.0, 0.5])
def test_replays_keep_overload_and_promise_what_a_linear_program_says(learn: float, promise) -> None:
    points = 0
    for seed in SEEDS:
        run, rates = replayed(seed, learn)
        points += len(rates) * len(run.outcomes)
        best = np.array([scipy_score(run.network, each) for each in rates])
        assert run.optimum == pytest.approx(best, rel=1e-6, abs=1e-9), seed
        whole = np.array(
            [walked(run.network, each, np.ones(len(run.outcomes[0].decisions[0].keeps)))[0] for each in rates]
        )
        full = whole > 1 + 1e-9
        assert run.full.tolist() == full.tolist(), seed
        rows = {row["planner"]: row for row in run.tables()["planners"].records()}
        for outcome in run.outcomes:
            found = [
                walked(run.network, each, decision.keeps)
                for each, decision in zip(rates, outcome.decisions, strict=True)
            ]
            uses, scores = np.array(found).T
            row, case = rows[outcome.planner], (seed, outcome.planner)
            assert row["overloaded"] == pytest.approx((uses > 1 + 1e-9).mean()), case
            if outcome.planner == "none":
                continue
            assert uses.max() <= 1 + 1e-8, case
            assert (scores <= best * (1 + 1e-6) + 1e-9).all(), case
            if best.sum():
                assert row["optimum_share"] == pytest.approx(scores.sum() / best.sum(), rel=1e-6, abs=1e-9), case
            if row["epsilon"] is not None and outcome.planner != "solver-w":
                assert (scores >= best * (1 - row["epsilon"] - 1e-6) - 1e-9).all(), case
            if outcome.planner in ("lp", "exact"):
                assert scores == pytest.approx(best, rel=1e-6, abs=1e-9), case
        summary = run.summary().records()[0]
        if full.any() and best.sum():
            assert summary["best"] != "none", (seed, summary["verdict"])
            assert str(summary["verdict"]).startswith("Drop by the plans of "), seed
    promise("shedding").checked(points)


def test_shares_of_whole_windows_are_those_of_a_linear_program_where_batches_are_long() -> None:
    checked = 0
    for seed in SEEDS:
        network, random = windowed(seed), np.random.default_rng([seed, 14])
        try:
            windows_of_arcs(Wiring.from_network(network))
        except UsageError:  # joins before an aggregate, or parallel aggregates with different windows
            continue
        rates = random.uniform(0, 12, (3, len(network.inputs))) * [each.scale for each in network.inputs]
        aware = WindowAware.for_network(planner_of(DropPlanner.EXACT, network), network, 100_000)
        plans = aware.plan(rates)
        for each, keeps, said in zip(rates, plans.keeps, plans.scores, strict=True):
            (use, score), best = walked(network, each, keeps), scipy_score(network, each)
            assert use <= 1 + 1e-3, seed
            assert score == pytest.approx(said, rel=1e-2, abs=1e-9), seed
            assert score <= best * (1 + 1e-3) + 1e-9, seed
            if not aware.merged:  # streams that merge keep the same share
                assert score >= best * (1 - 1e-2) - 1e-9, (seed, score, best)
                checked += any(aware.behind) and bool((keeps < 1).any())
    assert checked
