"""A coordinator and the nodes that follow it: traffic and delays."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.control import Control
from adapt.core.fit.distributed.coordinated import Coordinated
from adapt.core.fit.distributed.cuts import Group
from adapt.core.fit.distributed.messages import Topic
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.network import Input, Network, Node, Output
from adapt.core.fit.network.settings import Delivery
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Learnt, Observed
from adapt.core.fit.registry import COORDINATED, PLANNERS, planner_of
from adapt.core.fit.tables.local_plans import GreedyLocal
from tests.core.fit.networks import FIGURE_1, SHAPES, delay, random_network
from tests.core.fit.options import planner_options

CENTRAL, ALONE = sorted(COORDINATED), (DropPlanner.NONE, DropPlanner.GREEDY_LOCAL)
NOW = {"lag_ticks": 0, "min_rate_change": 0.0}
TOLD = Network(
    (Node("A"), Node("B", 2.0)),
    (Input("in0"), Input("in1")),
    (delay("a", "A", "in0", 0.5), delay("b", "B", "a", 1.0), delay("c", "B", "in1", 1.0)),
    (Output("first", "b"), Output("second", "c", 2.0)),
)
"""Nothing of input 1 passes node A, but how much A should keep of input 0 depends on it."""


def options(rates, **given):
    given = {"epsilon": 0.2, "max_plans": 300, **NOW, **given}
    return planner_options(max_rates=rates.max(axis=0), workload=Observed(rates), **given)


def decisions(network, name, rates, given):
    """The decision of each tick of a second, and the control loop after them."""
    control = Control(network, name, given, lambda: 0.0)
    control.announce(rates)
    return [control.decide(each) for each in rates], control


def keeps_of(made):
    return np.array([decision.keeps for decision in made])


def walk(network, seed, ticks=12, most=4.0):
    """Random rates; some ticks repeat the one before."""
    chance = np.random.default_rng(seed)
    rates = chance.uniform(0, most, (ticks, len(network.inputs)))
    repeats = np.flatnonzero(chance.random(ticks) < 0.3)
    rates[repeats[repeats > 0]] = rates[repeats[repeats > 0] - 1]
    return rates


@pytest.mark.parametrize("name", CENTRAL)
@pytest.mark.parametrize("shape", SHAPES)
def test_traffic_is_that_of_real_messages_without_delay_and_so_are_the_plans(name, shape) -> None:
    network = random_network(SHAPES.index(shape), shape)
    rates = walk(network, 3)
    try:
        counted, control = decisions(network, name, rates, options(rates))
    except UsageError as refused:
        pytest.skip(str(refused))
    sent, exchanged = decisions(network, name, rates, options(rates, delay_s=0.0))
    np.testing.assert_allclose(keeps_of(sent), keeps_of(counted), atol=1e-9)
    assert exchanged.traffic() == control.traffic()
    assert [decision.sent for decision in sent][1:] == [decision.sent for decision in counted][1:]
    assert not any(decision.stale for decision in sent)


def test_messages_of_figure_1_are_those_of_sections_4_and_7() -> None:
    rates = np.array([[0.1, 0.1], [0.1, 0.1], [1.0, 1.0], [1.0, 1.0]])
    made, control = decisions(FIGURE_1, DropPlanner.SOLVER, rates, options(rates, epsilon=0.3))
    traffic = {topic: (each.messages, each.rows, each.size) for topic, each in control.traffic().items()}
    operators, node, header = 2, 1, 8
    assert traffic[Topic.CATALOGUE] == (2, 6, 2 * (24 * (operators + node) + header))
    assert traffic[Topic.PLANS] == (1, control.table, control.table * 16 + header), "only A drops"
    assert traffic[Topic.RATES] == (2, 2, 2 * (16 + header) + 8), "of the first tick, and of the change"
    assert traffic[Topic.PLAN] == (2, 2, 2 * (8 * 4 + header) + 8), "number, id and two scales"
    assert [decision.sent.messages for decision in made] == [5, 0, 2, 0]


@pytest.mark.parametrize("name", [each for each in PLANNERS if each not in ALONE])
def test_no_plan_follows_rates_elsewhere_without_a_message(name) -> None:
    rates = np.array([[2.0, 0.5], [2.0, 1.0], [2.0, 1.5], [2.0, 2.0], [2.0, 2.0]])
    made, _ = decisions(TOLD, name, rates, options(rates, delay_s=0.0))
    keeps = keeps_of(made)[:, 0]
    moved = np.flatnonzero(keeps[1:] != keeps[:-1]) + 1
    assert keeps[0] > keeps[3], "less is kept of input 0, as more of input 1 enters the other node"
    if name in (DropPlanner.EXACT, DropPlanner.D_FIT_CUTS):
        assert keeps == pytest.approx([0.75, 0.5, 0.25, 0, 0], abs=1e-12), "docs/shedding.md"
    assert all(made[at].sent.messages for at in moved)


@pytest.mark.parametrize(("shape", "seed", "nodes"), [("tree", 4, 3), ("chains", 9, 4), ("dag", 7, 4)])
def test_every_question_and_answer_of_cuts_is_counted(shape, seed, nodes, monkeypatch) -> None:
    asked = []
    answer = Group.answer
    monkeypatch.setattr(Group, "answer", lambda *given: asked.append(1) or answer(*given))
    network = random_network(seed, shape, nodes=nodes)
    rates = walk(network, seed, 40, 100.0)
    _, control = decisions(network, DropPlanner.D_FIT_CUTS, rates, options(rates))
    traffic = control.traffic()
    counts = [traffic[topic].messages if topic in traffic else 0 for topic in (Topic.QUESTIONS, Topic.ANSWERS)]
    assert counts == [len(asked)] * 2
    assert len(asked) >= 40, "one in each overloaded tick"
    assert shape != "tree" or (control.sent.messages, 2 * len(asked)) == (91, 84), "docs/shedding.md"
    assert sum(each.messages for each in traffic.values()) == control.sent.messages


@pytest.mark.parametrize("name", [DropPlanner.EXACT, DropPlanner.SOLVER, DropPlanner.C_FIT])
def test_a_plan_arrives_after_the_way_of_rates_and_back(name) -> None:
    rates = walk(FIGURE_1, 5, most=1.0)
    at_once = keeps_of(decisions(FIGURE_1, name, rates, options(rates))[0])
    late = options(rates, delay_s=0.5, trust_upstream=True)
    made, _ = decisions(FIGURE_1, name, rates, late)
    keeps = keeps_of(made)
    np.testing.assert_allclose(keeps[2:], at_once[1:-1], atol=1e-9)
    assert (keeps[0] == 1).all(), "no plan has arrived yet"
    changed = (rates[1:] != rates[:-1]).any(axis=1)
    assert [decision.stale for decision in made[2:]] == changed[1:].tolist()
    made, _ = decisions(FIGURE_1, name, rates, options(rates, delay_s=1.4, trust_upstream=True))
    np.testing.assert_allclose(keeps_of(made)[3:], at_once[:-3], atol=1e-9)


@pytest.mark.parametrize("name", CENTRAL)
def test_without_messages_nodes_decide_alone_or_if_they_trust_are_overloaded(name) -> None:
    rates = walk(FIGURE_1, 6, most=1.0)
    alone = GreedyLocal(Program.from_network(FIGURE_1)).plan(rates)
    for trusts in (False, True):
        given = options(rates, delay_s=144_000.0, trust_upstream=trusts)
        made, control = decisions(FIGURE_1, name, rates, given)
        assert (keeps_of(made) == 1).all() == trusts
        assert trusts or keeps_of(made) == pytest.approx(alone.keeps)
        assert all(decision.stale for decision in made)
        assert control.sent.messages > 0


@pytest.mark.parametrize("seed", range(8))
def test_old_plans_overload_no_node_and_no_link(seed) -> None:
    network = random_network(seed, SHAPES[seed % 4])
    wiring, rates = Wiring.from_network(network), walk(network, seed, 20)
    for name in (DropPlanner.EXACT, DropPlanner.SOLVER_W):
        try:
            made, _ = decisions(network, name, rates, options(rates, delay_s=1.7))
        except UsageError as refused:
            pytest.skip(str(refused))
        assert wiring.uses(wiring.flows(rates, keeps_of(made))).max() <= 1 + 1e-9
        assert any(decision.stale for decision in made)


def test_new_capacities_are_reported_and_only_changed_plans_sent_again() -> None:
    program = Program.from_network(FIGURE_1)
    rates = np.array([[1.0, 1.0]])
    given = options(rates, epsilon=0.1)

    def make(network, _=None):
        return PLANNERS[DropPlanner.SOLVER](Program.from_network(network), given)

    nodes = Coordinated(make(FIGURE_1), program, make)
    before = nodes.exchange.total
    slower = Network((Node("A", 0.8), Node("B")), FIGURE_1.inputs, FIGURE_1.operators, FIGURE_1.outputs)
    nodes.change(Program.from_network(slower))
    nodes.settle()
    after = {topic: each for (channel, each) in nodes.exchange.traffic().items() for topic in [channel.topic]}
    assert nodes.exchange.total.messages - before.messages == 2, "one row of a catalogue, and a table"
    assert after[Topic.PLANS].messages == 2
    np.testing.assert_allclose(nodes.plan(rates).keeps, make(slower).plan(rates).keeps)


def test_the_workload_of_solver_w_is_learnt_from_the_rates_reported() -> None:
    rates = walk(FIGURE_1, 8, 20, 1.0)
    most = rates.max(axis=0)
    given = options(rates, epsilon=0.01)
    told = Learnt(np.empty((0, 2)), most)
    online = planner_options(epsilon=0.01, max_rates=most, workload=told, max_plans=300, **NOW)
    for delay_s in (None, 0.0):
        late = replace(online, delivery=Delivery(delay_s))
        made, control = decisions(FIGURE_1, DropPlanner.SOLVER_W, rates, late)
        learnt = planner_options(epsilon=0.01, max_rates=most, workload=Learnt(rates[:16], most), max_plans=300)
        after = planner_of(DropPlanner.SOLVER_W, FIGURE_1, learnt).plan(rates)
        np.testing.assert_allclose(keeps_of(made)[16:], after.keeps[16:], atol=1e-9)
        first = planner_of(DropPlanner.SOLVER_W, FIGURE_1, online).plan(rates)
        np.testing.assert_allclose(keeps_of(made)[:1], first.keeps[:1], atol=1e-9)
        assert 1 < control.traffic()[Topic.PLANS].messages <= 6, "after 0, 1, 2, 4, 8 and 16 ticks"
    known = decisions(FIGURE_1, DropPlanner.SOLVER_W, rates, given)[1]
    assert known.traffic()[Topic.PLANS].messages == 1


def test_a_learnt_workload_is_a_distribution_that_rules_nothing_out() -> None:
    chance = np.random.default_rng(0)
    most = np.array([2.0, 3.0])
    low = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.5)])
    high = low + most / 2
    rates = chance.uniform(0, 1, (50, 2))
    found = Learnt(rates, most).probability(low, np.where(high >= most, np.inf, high))
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()
    assert found[0] == pytest.approx((50 + 0.25) / 51)
