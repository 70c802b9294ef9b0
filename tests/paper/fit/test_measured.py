"""Measurements of FIT for the page."""

from itertools import product
from math import exp

import numpy as np
import pytest

from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.planners.fragments import fragments
from adapt.core.fit.planners.highs import WarmProgram
from adapt.core.fit.planners.program import AlikeInputs, Program
from adapt.core.fit.planners.solver import Exponential, Regions
from adapt.core.fit.registry import planner_of
from paper.fit.fairness import fairest
from paper.fit.figures.overhead import share
from paper.fit.figures.provision import PROVISIONED_RATE
from paper.fit.measured import (
    MOST_RATE,
    Described,
    Gridded,
    Planned,
    Resent,
    _expected,
)
from paper.fit.networks import PAIRS, Reading, two_servers
from paper.fit.placement.packing import packed
from paper.fit.placement.problem import Problem
from paper.fit.placement.search import search
from paper.fit.scope import EPSILON, SOLVER, chained
from tests.core.fit.large_networks import large_network
from tests.core.fit.networks import FIGURE_1, SHAPES, any_network, doubled, random_network, random_rates
from tests.core.fit.oracles import scipy_score

PARALLEL, CROSSED = chained("parallel", (64.0, 32.0)), chained("crossed", (64.0, 32.0))
POINTS = 400


def of(network, planner, epsilon=0.1, mean_rate=0.0, points=POINTS, kept=0):
    return Planned(network, planner, epsilon, mean_rate, points, kept, 1, 3)


def test_solver_keeps_its_error_and_has_the_expected_error_of_its_regions():
    told = of(CROSSED, SOLVER, EPSILON, 5.0).measure([])
    assert told["worst"] <= EPSILON + 1e-9
    program = CROSSED.program()
    regions = Regions(program, np.full(2, MOST_RATE))
    regions.divide(EPSILON)
    ((table, _),) = regions.planner().parts
    workload = Exponential(np.full(2, 5.0))
    expected = 0.0
    for low, high, error in zip(table.low, table.high, table.errors, strict=True):
        ends = [np.inf if end >= MOST_RATE else end for end in high]
        expected += error * np.prod([exp(-a / 5) - exp(-b / 5) for a, b in zip(low, ends, strict=True)])
    assert told["expected"] == pytest.approx(expected, rel=1e-9)
    assert workload.probability(np.zeros((1, 2)), np.full((1, 2), np.inf))[0] == 1


@pytest.mark.parametrize(("inputs", "points"), [(2, 46), (4, 876), (8, 42472)])
def test_grids_above_half_have_the_rows_of_table_3_but_for_4_inputs(inputs, points):
    assert Gridded(chained("parallel", (64.0, 32.0), inputs), (), 0.1, 0.5).measure([]) == points


def test_nothing_is_sent_again_where_nothing_changes_and_all_that_changes_without_a_distance():
    def network(selectivity):
        return Described.of("two_chains", a0=64.0, b0=32.0, a1=32.0, b1=64.0, selectivity=selectivity)

    # What B takes of the grid of ten steps up to 15.625, on the triangle's edge or beyond it.
    rows = [(i, j) for i in range(11) for j in range(11) if i + j >= 10 and i + 2 * j <= 20]
    still = Resent(network(1.0), network(1.0), 0.1, 0.0).measure([])
    assert still["before"] == still["after"] == len(rows)
    assert share(still) == still["erased"] == 0
    told = Resent(network(1.0), network(0.5), 0.1, 0.0).measure([])
    used = sum(i > 0 for i, _ in rows)
    assert told["sent"] == told["erased"] == used
    assert share(told) == used / len(rows)
    assert share(Resent(network(1.0), network(0.5), 0.1, 0.5).measure([])) < share(told)


def test_the_expected_error_of_solver_depends_on_the_mean_rate_and_not_on_the_highest() -> None:
    found = {}
    for most in (100.0, 200.0):
        for reading in Reading:
            errors = []
            for pair in PAIRS:
                regions = Regions(Program.from_network(two_servers(reading, *pair)), np.full(2, most))
                regions.divide(0.05)
                workload = Exponential(np.full(2, PROVISIONED_RATE))
                errors.append(_expected(regions.planner(), workload, np.full(2, most)))
            found.setdefault(reading, []).append(np.mean(errors))
    assert found[Reading.CROSSED] == pytest.approx([0.0145] * 2, abs=5e-5), "the paper says 1.44 %"
    assert found[Reading.PARALLEL] == pytest.approx([0.0182] * 2, abs=1e-4)


ONES = np.ones(2)


def test_max_min_fairness_keeps_a_quarter_of_each() -> None:
    program = Program.from_network(FIGURE_1)
    flows = fairest(program, ONES)
    assert flows == pytest.approx([1 / 4, 1 / 4], rel=1e-9)
    assert program.weights @ flows == pytest.approx(1 / 2, rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_gives_the_worst_query_more_than_the_fairest(seed: int) -> None:
    program = Program.from_network(random_network(seed, "dag"))
    rates = random_rates(seed, program.inputs, 1)[0] + 1 / 16
    outputs = np.flatnonzero(program.wiring.target < 0)
    unshed = program.wiring.unshed(rates[None])[0, outputs]

    def least(flows):
        return np.min((program.flow[outputs] @ flows) / unshed)

    fair = least(fairest(program, rates))
    assert fair >= least(WarmProgram(program).flows(rates)) - 1e-8
    random = np.random.default_rng(seed)
    for _ in range(20):
        keeps = random.random((1, len(program.wiring.arcs))) ** 0.3
        flows = program.wiring.flows(rates[None], keeps)
        flows /= max(1.0, program.wiring.uses(flows).max())
        assert fair >= np.min(flows[0, outputs] / unshed) - 1e-8


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
