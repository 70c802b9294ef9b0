"""Placements: worth against scipy, the search against all placements, alike inputs, groups within their limit."""

from itertools import product

import numpy as np
import pytest

from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.planners.fragments import fragments
from adapt.core.fit.planners.program import AlikeInputs, Program
from adapt.core.fit.registry import planner_of
from paper.fit.placement.packing import packed
from paper.fit.placement.problem import Problem
from paper.fit.placement.search import search
from tests.core.fit.large_networks import large_network
from tests.core.fit.networks import SHAPES, any_network, doubled, random_network, random_rates
from tests.core.fit.oracles import scipy_score


def sends_in_circles(network):
    """Whether nodes send to each other in a circle, by walking from every node."""
    node = {operator.name: operator.node for operator in network.operators}
    ways = {(node[read], operator.node) for operator in network.operators for read in operator.inputs if read in node}
    ways = {(one, other) for one, other in ways if one != other}
    reached = set(ways)
    while True:
        more = {(one, last) for one, other in reached for first, last in ways if other == first} - reached
        if not more:
            return any(one == other for one, other in reached)
        reached |= more


@pytest.mark.parametrize("seed", range(24))
def test_the_worth_of_a_placement_is_that_of_scipy_on_the_placed_network(seed):
    network = any_network(seed)
    rates = random_rates(seed, len(network.inputs), 2)
    problem = Problem(network, rates)
    at = np.random.default_rng(seed).integers(len(network.nodes), size=len(network.operators))
    placed = problem.network_of(at)
    expected = np.mean([scipy_score(placed, each) for each in rates])
    worth = problem.worth(at)
    assert worth.score == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert problem.pooled[0] >= expected * (1 - 1e-7) - 1e-9
    assert (worth.faults > 0) == sends_in_circles(placed)
    assert worth.fragments == sum(len(each.network.operators) > 0 for each in fragments(placed))


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6, 7, 8])
def test_traffic_is_what_the_best_flows_send_between_nodes(seed):
    network = random_network(seed, SHAPES[seed % 4], nodes=3, size=5)
    rates = random_rates(seed, len(network.inputs), 1)
    at = np.random.default_rng(seed).integers(3, size=5)
    placed = Problem(network, rates).network_of(at)
    program = Program.from_network(placed)
    flows = program.wiring.flows(rates, planner_of(DropPlanner.LP, placed).plan(rates).keeps)[0]
    node = {each.name: placed.node_of(each) for each in placed.sources}
    inner = [(arc, flow) for arc, flow in zip(program.wiring.arcs, flows, strict=True) if arc.port >= 0]
    operators = {each.name: each.node for each in placed.operators}
    sent = sum(flow for arc, flow in inner if node[arc.source] != operators[arc.target])
    assert Problem(network, rates).worth(at).traffic == pytest.approx(sent, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_best_of_all_placements_of_small_networks(seed):
    network = random_network(seed, SHAPES[seed % 4], nodes=3, inputs=2, size=4)
    rates = random_rates(seed + 5, 2, 2)
    problem = Problem(network, rates, max_inputs=1 + seed % 2)
    best = 0.0
    for at in product(range(3), repeat=4):
        placed = problem.network_of(np.array(at))
        if sends_in_circles(placed) or problem.worth(np.array(at)).faults:
            continue
        best = max(best, np.mean([scipy_score(placed, each) for each in rates]))
    found = search(problem, loss=0.0, tries=600)
    assert found.worth.faults == 0
    assert found.worth.score == pytest.approx(best, rel=1e-7, abs=1e-9)
    assert best <= found.bound * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_the_sum_of_alike_inputs_scores_as_they_do(seed):
    """A stream doubled with another scale: its rate goes to the first one, and the best score by scipy stays."""
    network = doubled(seed)
    program = Program.from_network(network)
    alike = AlikeInputs.from_program(program)
    for rates in random_rates(seed, 3, 6):
        merged = np.zeros(3)
        np.add.at(merged, alike.first[alike.set_of], rates * alike.factor)
        assert scipy_score(network, merged) == pytest.approx(scipy_score(network, rates), rel=1e-7, abs=1e-9)
    splits = any(
        "again" in arc.source for arc in (program.wiring.arcs[at] for at in program.drop_arcs[program.input_of < 0])
    )
    assert splits or alike.set_of[2] == alike.set_of[0], "without splits behind them they are alike"


@pytest.mark.parametrize("seed", range(3))
def test_packed_groups_keep_to_the_limit_without_circles(seed):
    network = large_network(seed, nodes=20)
    problem = Problem(network, np.array([[each.rate for each in network.inputs]]), max_inputs=4)
    worth = problem.worth(packed(problem))
    assert worth.faults == 0
    assert worth.inputs <= 4
    assert worth.score > problem.worth(problem.first).score
