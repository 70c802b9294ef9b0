"""Statistics of running nodes: against literal counts, and their intervals against draws."""

from collections import deque

import numpy as np
import pytest
from scipy import stats

from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output
from adapt.core.fit.network.true_values import with_values
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.fluid import Fluid, Offered
from adapt.core.fit.running.observing import Statistics, estimated_ratios
from adapt.core.fit.running.tuples import Tuples
from tests.core.fit.networks import random_network
from tests.tiers import SOAK

MAP, FILTER, JOIN = OperatorKind.MAP, OperatorKind.FILTER, OperatorKind.JOIN
TICK_US = 1_000_000
CHAIN = Network(
    (Node("A"), Node("B", 2.0)),
    (Input("in"),),
    (Operator("first", "A", FILTER, ("in",), 0.013, 0.7), Operator("second", "B", MAP, ("first",), 0.04, 1.5)),
    (Output("out", "second"),),
)


def offered_in(tick, times_us, inputs):
    return Offered(tick * TICK_US, (tick + 1) * TICK_US, times_us, inputs)


def literal_chain(arrivals, costs, selectivities, ticks):
    """Served, emitted and busy seconds of two single servers in a row, by operator and tick.

    A tuple costs what its operator costs when it begins, and emits by the selectivity of when it ends.
    """
    served, emitted, busy = (np.zeros((ticks, 2)) for _ in range(3))
    waiting = deque(arrivals)
    for operator in range(2):
        free, credit, given = 0.0, 0.0, []
        for at in waiting:
            begin = max(free, at)
            if begin >= ticks:
                break
            free = begin + costs[int(begin)][operator]
            for tick in range(int(begin), min(int(free), ticks - 1) + 1):
                busy[tick, operator] += min(free, tick + 1.0) - max(begin, float(tick))
            if free >= ticks:
                break
            tick = int(free)
            served[tick, operator] += 1
            credit += selectivities[tick][operator]
            whole = int(credit + 1e-9)
            credit -= whole
            emitted[tick, operator] += whole
            given += [free] * whole
        waiting = deque(given)
    return served, emitted, busy


def by_hand(amounts, per):
    """A ratio of sums with its interval, as a book has it."""
    pairs = [(amount, each) for amount, each in zip(amounts, per, strict=True) if each > 0]
    total = sum(each for _, each in pairs)
    ratio = sum(amount for amount, _ in pairs) / total
    variance = sum((amount - ratio * each) ** 2 for amount, each in pairs) / (len(pairs) - 1)
    half = stats.t.ppf(0.975, len(pairs) - 1) * np.sqrt(len(pairs) * variance) / total
    return ratio, ratio - half, ratio + half


def test_estimates_are_those_of_literally_counted_tuples() -> None:
    ticks, window, random = 12, 5, np.random.default_rng(3)
    costs = np.array([0.013, 0.02]) * random.uniform(0.6, 1.6, (ticks, 2))
    selectivities = np.array([0.6, 1.5]) * random.uniform(0.6, 1.6, (ticks, 2))
    times_us = np.sort(random.integers(0, ticks * TICK_US, 60 * ticks))
    served, emitted, busy = literal_chain(times_us / 1e6, costs, selectivities, ticks)
    wirings = [Wiring.from_network(with_values(CHAIN, costs[at] * [1, 2], selectivities[at])) for at in range(ticks)]
    running, counted = Tuples(Wiring.from_network(CHAIN)), Statistics(Wiring.from_network(CHAIN), window)
    for at in range(ticks):
        mine = times_us[times_us // TICK_US == at]
        running.follow(wirings[at])
        tick = running.run(offered_in(at, mine, np.zeros(len(mine), np.int64)), np.ones(3))
        assert tick.served[:2].tolist() == served[at].tolist()
        assert tick.work_s[:2] == pytest.approx(busy[at], abs=1e-9)
        counted.add(tick, 1.0)
        past = slice(max(0, at + 1 - window), at + 1)
        if at == 0:
            assert np.isinf(counted.costs[2]).all()
            continue
        for operator in range(2):
            cost = by_hand(busy[past, operator] * [1, 2][operator], served[past, operator])
            share = by_hand(emitted[past, operator], served[past, operator])
            for estimates, expected in ((counted.costs, cost), (counted.selectivities, share)):
                assert estimates[:, operator] == pytest.approx(np.array(expected), rel=1e-6)


def test_intervals_hold_the_true_value_as_often_as_they_say() -> None:
    random, runs, ticks, cost, share = np.random.default_rng(5), 4000, 10, 0.002, 0.3
    taken = random.poisson(80, (ticks, runs))
    seconds = random.gamma(np.maximum(taken, 1e-9), cost)
    for amounts, true in ((seconds, cost), (random.binomial(taken, share), share)):
        _, low, high = estimated_ratios(amounts.astype(float), taken.astype(float))
        held = (low <= true) & (true <= high)
        assert abs(held.mean() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / runs) + 0.003


@pytest.mark.parametrize("seed", range(12 if SOAK else 4))
def test_the_work_of_arcs_adds_up_to_the_time_that_nodes_are_busy(seed) -> None:
    network, random = random_network(seed, ("chains", "tree", "merges", "dag")[seed % 4]), np.random.default_rng(seed)
    wiring = Wiring.from_network(network)
    nodes = len(network.nodes)
    on = (wiring.use[:nodes] > 0).astype(float)
    for running in (Tuples(wiring), Fluid(wiring)):
        for at in range(4):
            times_us = np.sort(random.integers(at * TICK_US, (at + 1) * TICK_US, 9))
            tick = running.run(
                offered_in(at, times_us, random.integers(0, wiring.inputs, 9)), np.ones(len(wiring.arcs))
            )
            assert on @ tick.work_s == pytest.approx(tick.busy_s[:nodes], abs=1e-9)


def test_a_join_says_nothing_of_its_selectivity_before_its_windows_are_full() -> None:
    network = Network(
        (Node("A"),),
        (Input("left"), Input("right")),
        (Operator("join", "A", JOIN, ("left", "right"), 1e-5, 0.01, (50.0, 80.0)),),
        (Output("out", "join"),),
    )
    wiring, random = Wiring.from_network(network), np.random.default_rng(1)
    running, counted, known = Tuples(wiring), Statistics(wiring, 4), []
    for at in range(6):
        times_us = np.sort(random.integers(at * TICK_US, (at + 1) * TICK_US, 60))
        counted.add(running.run(offered_in(at, times_us, np.arange(60) % 2), np.ones(3)), 1.0)
        known.append(float(counted.selectivities[0, 0]))
    assert np.isnan(known[:3]).all(), "80 tuples of the right side take three ticks"
    assert known[-1] == pytest.approx(0.01, rel=0.02)
    assert counted.costs[0, 0] == pytest.approx(1e-5)
    assert counted.rates[0] == pytest.approx(np.array([30.0, 30.0, 39.0]), abs=0.5)
