"""D-FIT with cuts: the optimum of the whole network, from what neighbours tell each other."""

import os
from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.cuts import DFitCuts
from adapt.core.fit.distributed.distributed import DFit
from adapt.core.fit.distributed.messages import Channel, Topic
from adapt.core.fit.network.network import Input, Link, Network, Node, Output
from adapt.core.fit.network.settings import Delivery
from adapt.core.fit.planners.program import Program
from adapt.core.fit.tables.rows import Spacing
from tests.core.fit.networks import (
    DIAMOND,
    FIGURE_1,
    FIGURE_7,
    SHAPES,
    chains,
    delay,
    random_network,
    random_rates,
)
from tests.core.fit.oracles import scipy_score

SOAK = bool(os.environ.get("ADAPT_SOAK"))


def made(network, **options):
    groups = DFitCuts(Program.from_network(network), **options)
    groups.settle()
    return groups


def scores(groups, rates):
    """What plans give, which must fit."""
    wiring = groups.program.wiring
    plans = groups.plan(np.asarray(rates, float))
    flows = wiring.flows(np.asarray(rates, float), plans.keeps)
    assert ((plans.keeps >= 0) & (plans.keeps <= 1)).all()
    assert (wiring.uses(flows) <= 1 + 1e-9).all()
    assert wiring.scores(flows) == pytest.approx(plans.scores, rel=1e-12, abs=1e-15)
    return plans.scores


def changed(network, name, **numbers):
    operators = [replace(o, **numbers) if o.name == name else o for o in network.operators]
    return replace(network, operators=tuple(operators))


def two_servers(seed):
    """Two to four queries of one to three operators on each of two servers, with splits on some."""
    random = np.random.default_rng(seed)
    operators, outputs = [], []
    for query in range(random.integers(2, 5)):
        name = f"in{query}"
        for server in "AB":
            for step in range(random.integers(1, 3)):
                new = f"{server}{query}{step}"
                selectivity = float(random.choice([0.25, 0.5, 1.0, 1.5]))
                operators.append(delay(new, server, name, float(random.integers(1, 17)) / 8, selectivity))
                if random.random() < 0.3:
                    outputs.append(Output(f"side {new}", name, float(random.integers(1, 4))))
                name = new
        outputs.append(Output(f"out {query}", name, float(random.integers(1, 4))))
    inputs = sorted({read for operator in operators for read in operator.inputs if read.startswith("in")})
    return Network((Node("A"), Node("B")), tuple(map(Input, inputs)), tuple(operators), tuple(outputs))


def test_on_two_servers_it_is_the_program_of_the_whole() -> None:
    for seed in range(300 if SOAK else 15):
        network = two_servers(seed)
        rates = random_rates(seed, len(network.inputs), 6)
        groups = made(network)
        assert [group.nodes for group in groups.groups] == [(0,), (1,)]
        best = [scipy_score(network, point) for point in rates]
        assert scores(groups, rates) == pytest.approx(best, rel=1e-9, abs=1e-12), seed
        assert groups.asked == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_on_any_network_it_is_the_program_of_the_whole(shape: str) -> None:
    for seed in range(200 if SOAK else 5):
        network = random_network(seed, shape, nodes=4, inputs=3, size=8)
        rates = random_rates(seed, 3, 6)
        best = [scipy_score(network, point) for point in rates]
        assert scores(made(network), rates) == pytest.approx(best, rel=1e-9, abs=1e-12), seed


def row(length, **options):
    """Three queries along a row of nodes, with an input of their own at nodes further on."""
    random = np.random.default_rng(length)
    operators, outputs, inputs = [], [], []
    for query in range(3):
        name = f"in{query}"
        inputs.append(Input(name))
        for node in range(query, length):
            operators.append(delay(f"{node}.{query}", f"n{node}", name, float(random.integers(1, 9)) / 8, 0.75))
            name = f"{node}.{query}"
        outputs.append(Output(f"out{query}", name, 1.0 + query))
    return Network(tuple(Node(f"n{node}") for node in range(length)), tuple(inputs), tuple(operators), tuple(outputs))


def test_along_a_row_of_nodes_cuts_are_asked_for_and_then_known() -> None:
    network = row(5)
    groups, random = made(network), np.random.default_rng(0)
    rates = random.random((40, 3)) * 3
    best = [scipy_score(network, point) for point in rates]
    assert scores(groups, rates) == pytest.approx(best, rel=1e-9)
    assert groups.asked > 0
    told = {way: sent for way, sent in groups.exchange.traffic().items() if way.topic is Topic.CUTS}
    assert scores(groups, rates) == pytest.approx(best, rel=1e-9)
    assert {way: sent for way, sent in groups.exchange.traffic().items() if way.topic is Topic.CUTS} == told


def test_links_are_kept_to() -> None:
    sized = tuple(replace(operator, out_bytes=10.0) for operator in FIGURE_1.operators)
    network = replace(FIGURE_1, operators=sized, links=(Link("A", "B", 5.0),))
    assert scores(made(network), [[1, 1]]) == pytest.approx([0.5], rel=1e-12)


def test_the_papers_small_cases() -> None:
    assert scores(made(FIGURE_1), [[1, 1]]) == pytest.approx([3 / 5], rel=1e-12)
    assert scores(made(FIGURE_7), [[0.2]]) == pytest.approx([0.28], rel=1e-12)
    assert scores(made(DIAMOND), [[1]]) == pytest.approx([7 / 27], rel=1e-12)


def test_a_leaf_without_splits_tells_one_row_more_than_it_has_inputs_at_most() -> None:
    for inputs in (1, 3, 8):
        costs = np.random.default_rng(inputs).uniform(0.1, 1, (inputs, 2))
        groups = made(chains([tuple(map(float, along)) for along in costs]))
        traffic = groups.exchange.traffic()[Channel(1, 0, Topic.CUTS)]
        assert traffic.rows == inputs + 1
        assert traffic.size == (inputs + 1) * (8 + 22 * inputs) + 8


def test_eight_inputs_take_less_than_a_hundredth_of_the_rows_of_tables() -> None:
    network = chains([(0.016, 0.016), (0.008, 0.008)] * 4)
    tables = DFit(Program.from_network(network), np.full(8, 1e3), Spacing(0.2))
    tables.settle()
    rows = [sum(traffic.rows for traffic in planner.exchange.traffic().values()) for planner in (made(network), tables)]
    assert rows[0] < rows[1] / 100


def test_no_cut_lies_below_the_best_score() -> None:
    network = row(4)
    groups, random = made(network), np.random.default_rng(1)
    scores(groups, random.random((20, 3)) * 3)
    cuts = groups.groups[1].cuts()
    operators = [replace(o, inputs=("in0",)) if o.name == "1.0" else o for o in network.operators if o.node != "n0"]
    rest = replace(network, nodes=network.nodes[1:], operators=tuple(operators))
    arcs = [groups.program.wiring.arcs[arc].source for arc in groups.groups[1].dimensions]
    order = [("0.0", "in1", "in2").index(source) for source in arcs]
    assert len(cuts) > 2
    for rates in random.random((20, 3)) * 3:
        assert (cuts[:, 0] + cuts[:, 1:] @ rates[order] >= scipy_score(rest, rates) * (1 - 1e-9)).all()


def test_after_a_change_of_selectivity_only_what_changed_is_sent_and_the_cuts_are_those_from_scratch() -> None:
    network = chains([(0.1, 0.2), (0.3, 0.4), (0.2, 0.7)])
    groups, channel = made(network), Channel(1, 0, Topic.CUTS)
    before, first = groups.members[1].cuts(), groups.exchange.traffic()[channel].rows
    groups.change(Program.from_network(changed(network, "B1", selectivity=0.9)))
    groups.settle()
    after = made(changed(network, "B1", selectivity=0.9)).members[1].cuts()
    assert np.array_equal(groups.members[1].cuts(), after)
    new = [r for r in after.tolist() if r not in before.tolist()]
    assert groups.exchange.traffic()[channel].rows - first == len(new)
    assert 0 < len(new) < len(after)


def test_after_any_changes_plans_are_the_best_again_and_before_that_they_fit() -> None:
    for seed in range(40 if SOAK else 4):
        random = np.random.default_rng(seed)
        network = random_network(seed, SHAPES[seed % 4], nodes=4, inputs=2, size=7)
        groups = DFitCuts(Program.from_network(network), Delivery(0.4))
        rates = random_rates(seed, 2, 5)
        for _ in range(3):
            scores(groups, rates)
            groups.settle(groups.exchange.now + random.exponential(0.5))
            name = network.operators[random.integers(len(network.operators))].name
            network = changed(network, name, cost=random.random(), selectivity=random.choice([0.25, 0.5, 1.0]))
            groups.change(Program.from_network(network))
        stale = scores(groups, rates)
        for point in rates:
            for _ in range(30):  # every plan may find a cut that a child has not sent yet
                groups.settle()
                again = scores(groups, [point])
            assert again == pytest.approx([scipy_score(network, point)], rel=1e-9, abs=1e-12), seed
        best = [scipy_score(network, point) for point in rates]
        assert (stale <= np.array(best) * (1 + 1e-9) + 1e-12).all()


def test_a_moved_operator_is_followed() -> None:
    network = row(3)
    groups, rates = made(network), np.random.default_rng(2).random((10, 3)) * 3
    for name, node in [("1.0", "n0"), ("1.0", "n1"), ("1.1", "n2"), ("2.0", "n1")]:
        network = changed(network, name, node=node)
        groups.change(Program.from_network(network))
        best = [scipy_score(network, point) for point in rates]
        groups.settle()
        assert scores(groups, rates) == pytest.approx(best, rel=1e-9, abs=1e-12)


def test_a_group_with_another_parent_tells_it_what_it_has_told_before() -> None:
    network = Network(
        tuple(map(Node, "ABC")),
        (Input("x"), Input("y")),
        (
            delay("a", "A", "x", 0.1),
            delay("b", "A", "a", 0.1),
            delay("c", "C", "b", 0.5),
            delay("d", "B", "y", 0.3),
            delay("e", "B", "d", 0.2),
        ),
        (Output("o", "c"), Output("p", "e")),
    )
    groups, rates = made(network), np.random.default_rng(0).random((10, 2)) * 5
    for node in ("B", "A"):
        network = changed(network, "b", node=node)
        groups.change(Program.from_network(network))
        groups.settle()
        best = [scipy_score(network, point) for point in rates]
        assert scores(groups, rates) == pytest.approx(best, rel=1e-9)


def test_other_operators_are_refused() -> None:
    with pytest.raises(UsageError, match="a change of operators"):
        made(FIGURE_1).change(Program.from_network(FIGURE_7))
