"""Running networks: fluid against the program, tuples against their own books."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.fit.control import Control
from adapt.core.fit.network.names import DropPlanner, OperatorKind
from adapt.core.fit.network.network import Input, Link, Network, Node, Operator, Output
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.registry import planner_of
from adapt.core.fit.running.fluid import Fluid, Offered
from adapt.core.fit.running.tuples import Tuples
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor
from tests.core.fit.networks import SHAPES, chains, delay, random_network
from tests.core.fit.options import planner_options
from tests.core.random_drop import random_drop
from tests.tiers import SOAK, examples

NOW = SheddingSettings(lag_ticks=0, headroom=0.0, min_rate_change=0.0)
PLANNED = [DropPlanner.LP, DropPlanner.EXACT]


def still():
    return 0.0


def rows_of(counts, tick, tick_us=1_000_000, seed=0):
    """So many rows of each input, anywhere in a tick."""
    inputs = np.repeat(np.arange(len(counts)), counts)
    chance = np.random.default_rng([seed, tick])
    inputs = chance.permutation(inputs)
    at_us = np.sort(chance.integers(tick * tick_us, (tick + 1) * tick_us, len(inputs)))
    return Offered(tick * tick_us, (tick + 1) * tick_us, at_us, inputs)


def scaled(network, factor):
    """The same with cheaper operators: whole numbers of tuples then come near the capacities."""
    return Network(
        network.nodes,
        network.inputs,
        tuple(replace(each, cost=each.cost / factor) for each in network.operators),
        network.outputs,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_fluid_with_lag_0_scores_what_the_program_does_at_every_tick(shape: str) -> None:
    for seed in range(12 if SOAK else 4):
        network = scaled(random_network(seed, shape), 64)
        chance = np.random.default_rng(seed)
        best = planner_of(DropPlanner.LP, network)
        for name in PLANNED:
            control = Control(network, name, planner_options(settings=NOW), still)
            running = Fluid(Wiring.from_network(network))
            for at in range(12):
                counts = chance.integers(0, 120, len(network.inputs))
                decided = control.decide(counts.astype(float))
                tick = running.run(rows_of(counts, at), decided.keeps)
                optimum = best.plan(counts[None, :].astype(float)).scores[0]
                assert tick.score == pytest.approx(optimum, rel=1e-9, abs=1e-9), (seed, name, at)
                assert tick.queued == pytest.approx(0, abs=1e-8)
                assert (tick.busy_s <= 1 + 1e-9).all()


def balanced(ticks):
    """On every arc, from the start on: offered = dropped + queue_drops + served + queued."""
    sums = dict.fromkeys(("offered", "dropped", "queue_drops", "served"), 0.0)
    for tick in ticks:
        for name in sums:
            sums[name] = sums[name] + getattr(tick, name)
        done = sums["dropped"] + sums["queue_drops"] + sums["served"] + tick.queued
        assert sums["offered"] == pytest.approx(done, rel=1e-12, abs=1e-9)


@examples(30)
@given(
    st.integers(0, 10_000),
    st.sampled_from(SHAPES),
    st.sampled_from([1.0, 0.3, 3.0]),
    st.sampled_from([None, Overload(ShedFactor(0.5, 0.2), 20, 1.0)]),
    st.booleans(),
)
def test_what_comes_in_goes_out_is_dropped_or_waits(seed, shape, cost_scale, overload, fluid) -> None:
    network = scaled(random_network(seed, shape), 64)
    wiring = Wiring.from_network(network)
    running = Fluid(wiring, cost_scale) if fluid else Tuples(wiring, seed, cost_scale, overload)
    chance = np.random.default_rng(seed)
    ticks, given_so_far, rows = [], np.zeros(len(network.sources)), np.zeros(len(network.inputs))
    for at in range(6):
        counts = chance.integers(0, 150, len(network.inputs))
        rows += counts
        ticks.append(running.run(rows_of(counts, at, seed=seed), chance.random(len(wiring.arcs))))
    balanced(ticks)
    offered, served = (sum(getattr(tick, name) for tick in ticks) for name in ("offered", "served"))
    for source in range(len(network.sources)):
        out = wiring.arcs_of(source)
        assert len(set(offered[out].tolist())) == 1, "all consumers are given the same"
        given_so_far[source] = offered[out.start]
    assert given_so_far[: len(rows)] == pytest.approx(rows)
    joins = {at for at, each in enumerate(network.sources) if getattr(each, "kind", None) is OperatorKind.JOIN}
    for operator in range(len(rows), len(network.sources)):
        into = np.flatnonzero(wiring.target == operator)
        full = wiring.gain[into] @ served[into]
        if fluid:
            assert given_so_far[operator] == pytest.approx(full)
        elif operator in joins:
            assert given_so_far[operator] <= full + 1
        else:
            assert full - len(into) < given_so_far[operator] <= full + 1e-6
    for tick in ticks:
        assert (tick.busy_s <= 1 + 1e-9).all()
        assert -1e-9 <= tick.score <= wiring.worth @ tick.served + 1e-9
    if max(tick.wait_s.max() for tick in ticks) < 0.1:
        assert [tick.score for tick in ticks] == pytest.approx([wiring.worth @ tick.served for tick in ticks])
    if not fluid:
        assert running.latencies().sum() == sum(tick.served[wiring.target < 0].sum() for tick in ticks)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.93])
def test_the_kept_share_lies_within_4_sigma_at_inputs_and_splits(keep: float) -> None:
    network = Network(
        (Node("A", 1e6),),
        (Input("in"),),
        (delay("root", "A", "in", 1.0), delay("top", "A", "root", 1.0), delay("bottom", "A", "root", 1.0)),
        (Output("upper", "top"), Output("lower", "bottom")),
    )
    for seed in range(10):
        tick = Tuples(Wiring.from_network(network), seed).run(rows_of([20_000], 0), np.full(5, keep))
        kept = tick.offered - tick.dropped
        assert (np.abs(kept - keep * tick.offered) < 4 * np.sqrt(tick.offered * keep * (1 - keep))).all()


def test_which_rows_are_kept_depends_on_their_draws_alone_however_ticks_cut_them() -> None:
    wiring = Wiring.from_network(chains([(1e-9,)]))
    kept = random_drop(5, 0, np.arange(3000), 0.4)
    for cuts in ([0, 3000], [0, 1, 700, 2999, 3000]):
        running = Tuples(wiring, 5)
        for first, last in pairwise(cuts):
            rows = np.arange(first, last)
            tick = running.run(Offered(first, last, rows, np.zeros(len(rows), np.int64)), np.array([0.4, 1.0]))
            assert tick.offered[0] - tick.dropped[0] == kept[first:last].sum()


def literal_queue(arrivals, service_s):
    """When each tuple is done at one server, first come first served."""
    free, done = 0.0, []
    for at in arrivals:
        free = max(free, at) + service_s
        done.append(free)
    return np.array(done)


@pytest.mark.parametrize("service_s", [0.001, 0.02])
def test_latency_and_backlog_are_those_of_a_queue_at_each_node(service_s: float) -> None:
    rows = rows_of([100], 0)
    tick = Tuples(Wiring.from_network(chains([(service_s, service_s / 2)]))).run(rows, np.ones(3))
    arrivals = rows.at_us / 1e6
    done = literal_queue(literal_queue(arrivals, service_s), service_s / 2)
    in_time = done < 1
    assert tick.served[2] == in_time.sum()
    assert tick.latency_s == pytest.approx((done - arrivals)[in_time].mean(), rel=1e-9)
    assert tick.latency_max_s == pytest.approx((done - arrivals)[in_time].max(), rel=1e-9)
    waiting = literal_queue(arrivals, service_s) >= 1
    assert tick.queued[0] == waiting.sum()
    assert tick.wait_s[0] == pytest.approx(service_s * waiting.sum())


def test_a_link_lets_through_no_more_than_its_bytes() -> None:
    network = Network(
        (Node("A", 1e6), Node("B", 1e6)),
        (Input("in"),),
        (
            Operator("a", "A", OperatorKind.MAP, ("in",), 1.0, out_bytes=10.0),
            Operator("b", "B", OperatorKind.MAP, ("a",), 1.0),
        ),
        (Output("out", "b"),),
        (Link("A", "B", 300.0),),
    )
    running = Tuples(Wiring.from_network(network))
    ticks = [running.run(rows_of([100], at), np.ones(3)) for at in range(3)]
    assert [tick.served[1] for tick in ticks[1:]] == pytest.approx([30, 30], abs=1)
    assert ticks[1].busy_s[2] == pytest.approx(1.0)
    balanced(ticks)


def test_a_join_gives_s_w_for_each_tuple_once_its_windows_are_full() -> None:
    network = Network(
        (Node("A", 1e6),),
        (Input("left"), Input("right")),
        (Operator("j", "A", OperatorKind.JOIN, ("left", "right"), 1.0, 0.25, (2, 6)),),
        (Output("out", "j"),),
    )
    running = Tuples(Wiring.from_network(network))
    first, second = (running.run(rows_of([40, 40], at), np.ones(3)) for at in range(2))
    assert second.offered[2] == pytest.approx(40 * 0.25 * 6 + 40 * 0.25 * 2, abs=1)
    assert first.offered[2] < second.offered[2]


def test_a_row_stands_for_as_many_tuples_as_its_input_says() -> None:
    network = Network((Node("A"),), (Input("in", scale=2.5),), (delay("a", "A", "in", 0.0),), (Output("out", "a"),))
    tick = Tuples(Wiring.from_network(network)).run(rows_of([10], 0), np.ones(2))
    assert tick.offered[0] == 25


def test_more_tuples_for_one_than_can_be_followed_are_refused_by_name() -> None:
    network = Network((Node("A"),), (Input("in", scale=1e9),), (delay("a", "A", "in", 0.0),), (Output("out", "a"),))
    with pytest.raises(BadInput, match="'in' emits 1,000,000,000 tuples for one"):
        Tuples(Wiring.from_network(network))


def test_a_node_that_refuses_keeps_its_queue_below_what_it_can_hold() -> None:
    wiring = Wiring.from_network(chains([(0.01,)]))
    running = Tuples(wiring, 1, overload=Overload(ShedFactor(0.5), 40, 1.0))
    ticks = [running.run(rows_of([400], at), np.ones(2)) for at in range(5)]
    assert all(tick.queued[0] <= 40 for tick in ticks)
    assert ticks[-1].served[0] == pytest.approx(100, abs=1)
    assert ticks[-1].queue_drops[0] == pytest.approx(300, abs=10)


def test_a_plan_knows_rates_only_after_the_lag_and_smooths_them() -> None:
    network = chains([(0.01,)])
    control = Control(
        network,
        DropPlanner.EXACT,
        planner_options(lag_ticks=2, smoothing=0.5),
        still,
    )
    seen = [float(control.decide(np.array([rate])).rates[0]) for rate in (400.0, 100.0, 0.0, 0.0, 0.0)]
    assert seen == [0, 0, 400, 250, 125]


def test_small_changes_wait_and_what_fits_is_never_shed() -> None:
    network = chains([(0.01,)])
    control = Control(network, DropPlanner.EXACT, planner_options(lag_ticks=0, min_rate_change=0.05), still)
    rates = [200.0, 196.0, 204.0, 400.0, 99.0]
    kept = [(d.keeps[0], d.changed) for d in (control.decide(np.array([rate])) for rate in rates)]
    assert [share for share, _ in kept] == pytest.approx([0.5, 0.5, 100 / 204, 0.25, 1.0])
    assert [changed for _, changed in kept] == [True, False, True, True, True]


def test_plans_that_are_foreseen_are_those_of_one_tick_at_a_time() -> None:
    network = chains([(0.01, 0.03), (0.02, 0.01)])
    rates = np.random.default_rng(1).integers(0, 200, (50, 2)).astype(float)
    asked = planner_options(lag_ticks=2, smoothing=0.4)
    together, apart = (Control(network, DropPlanner.EXACT, asked, still) for _ in range(2))
    together.announce(rates)
    for now in rates:
        one, other = together.decide(now), apart.decide(now)
        assert one.rates.tolist() == other.rates.tolist()
        assert one.keeps == pytest.approx(other.keeps, rel=1e-9)
        assert one.changed == other.changed


@pytest.mark.parametrize("cost_scale", [0.7, 1.3])
def test_feedback_finds_what_nodes_can_really_do(cost_scale: float) -> None:
    network = chains([(0.001, 0.003), (0.002, 0.001)])
    wiring = Wiring.from_network(network)

    def last_ticks(feedback):
        control = Control(network, DropPlanner.EXACT, planner_options(lag_ticks=0, feedback=feedback), still)
        running = Fluid(wiring, cost_scale)
        ticks = []
        for at in range(40):
            tick = running.run(rows_of([700, 700], at), control.decide(np.array([700.0, 700.0])).keeps)
            control.observe(tick, 1.0)
            ticks.append(tick)
        return [wiring.worth @ tick.served for tick in ticks[20:]], [tick.wait_s.max() for tick in ticks[20:]]

    (blind, blind_waits), (told, told_waits) = last_ticks(False), last_ticks(True)
    optimum = planner_of(DropPlanner.LP, scaled(network, 1 / cost_scale)).plan(np.array([[700.0, 700.0]])).scores[0]
    assert np.mean(told) == pytest.approx(optimum, rel=0.01)
    if cost_scale > 1:
        assert blind_waits[-1] > 2 > told_waits[-1]
    else:
        assert np.mean(blind) < 0.9 * optimum
