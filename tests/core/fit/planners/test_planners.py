"""What all planners promise, and the ones without a table."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.network import Input, Network, Node, Output
from adapt.core.fit.planners.direct_planners import MADE, UNSHED
from adapt.core.fit.planners.fragments import fragments
from adapt.core.fit.planners.program import Program
from adapt.core.fit.registry import PLANNERS, planner_of
from tests.core.fit.networks import FIGURE_1, FIGURE_7, SHAPES, delay, random_network, random_rates
from tests.core.fit.options import planner_options
from tests.tiers import SOAK

LP, EXACT, GREEDY = DropPlanner.LP, DropPlanner.EXACT, DropPlanner.GREEDY_LOCAL
PROPORTIONAL, NONE = DropPlanner.PROPORTIONAL, DropPlanner.NONE


def planned(name, network, rates, **options):
    """Plans, and the score that their shares really give."""
    options = planner_options(**{"max_rates": np.full(len(network.inputs), 4.0), **options})
    plans = planner_of(name, network, options).plan(np.asarray(rates, float))
    wiring = Program.from_network(network).wiring
    return plans, wiring.scores(wiring.flows(np.asarray(rates, float), plans.keeps))


@pytest.mark.parametrize("shape", SHAPES)
def test_on_one_server_the_greedy_local_plan_is_the_best(shape: str) -> None:
    for seed in range(30 if SOAK else 10):
        network = random_network(seed, shape, nodes=1)
        rates = random_rates(seed, len(network.inputs), 20)
        _, greedy = planned(GREEDY, network, rates)
        _, best = planned(EXACT, network, rates)
        assert greedy == pytest.approx(best, rel=1e-9, abs=1e-12), seed


def test_figure_1_greedy_is_plan_2_of_table_1() -> None:
    plans, score = planned(GREEDY, FIGURE_1, [[1, 1]])
    assert plans.keeps[0, :2] == pytest.approx([1, 0], abs=1e-12)
    assert score == pytest.approx([1 / 3], rel=1e-12)


def test_figure_1_unshed_gives_what_table_1_says() -> None:
    plans, _ = planned(NONE, FIGURE_1, [[1, 1]])
    assert plans.scores == pytest.approx([1 / 2], rel=1e-12)


def test_figure_7_proportional_gives_a_quarter() -> None:
    plans, score = planned(PROPORTIONAL, FIGURE_7, [[0.2]])
    assert plans.keeps[0, 0] == pytest.approx(0.625, rel=1e-12)
    assert score == pytest.approx([0.25], rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [PROPORTIONAL, GREEDY, LP, EXACT])
def test_plans_fit_and_score_what_they_promise(name: DropPlanner, shape: str) -> None:
    for seed in range(8):
        network = random_network(seed, shape)
        rates = random_rates(seed, len(network.inputs), 12)
        plans, score = planned(name, network, rates)
        assert ((plans.keeps >= 0) & (plans.keeps <= 1)).all()
        wiring = Program.from_network(network).wiring
        assert (wiring.uses(wiring.flows(rates, plans.keeps)) <= 1 + 1e-9).all(), seed
        assert plans.scores == pytest.approx(score, rel=1e-9, abs=1e-12), seed
        _, best = planned(LP, network, rates)
        assert (score <= best * (1 + 1e-9) + 1e-12).all()
        unshed = (plans.keeps == 1).all(axis=1)
        assert unshed[(plans.ids == UNSHED).all(axis=1)].all()


def test_headroom_leaves_that_part_of_every_node_free() -> None:
    rates = np.ones((1, 2))
    plans, _ = planned(EXACT, FIGURE_1, rates, headroom=0.1)
    wiring = Program.from_network(FIGURE_1).wiring
    assert wiring.uses(wiring.flows(rates, plans.keeps)) == pytest.approx(np.full((1, 2), 0.9), rel=1e-12)


def test_fragments_share_neither_tuples_nor_nodes() -> None:
    two = Network(
        (Node("A"), Node("B"), Node("idle")),
        (Input("x"), Input("y"), Input("z")),
        (delay("a", "A", "x", 1.0), delay("b", "B", "z", 1.0), delay("c", "A", "y", 1.0)),
        (Output("oa", "a"), Output("ob", "b"), Output("oc", "c"), Output("raw", "x")),
    )
    parts = fragments(two)
    assert [part.inputs.tolist() for part in parts] == [[0, 1], [2]]
    assert [[node.name for node in part.network.nodes] for part in parts] == [["A"], ["B"]]
    plans, score = planned(EXACT, two, [[1, 1, 0.5], [1, 1, 3]])
    assert plans.ids.tolist() == [[MADE, UNSHED], [MADE, MADE]]
    assert score == pytest.approx([1 + 1 + 0.5, 1 + 1 + 1], rel=1e-12)


def test_every_planner_has_a_name_and_a_maker() -> None:
    assert set(PLANNERS) == set(DropPlanner)


@pytest.mark.parametrize("name", [DropPlanner.D_FIT, DropPlanner.D_FIT_CUTS, EXACT])
def test_a_planner_that_takes_the_place_of_another_plans_as_a_new_one_and_tells_only_what_changed(name) -> None:
    slower = replace(FIGURE_1, nodes=(FIGURE_1.nodes[0], Node("B", 0.9)))
    rates = np.random.default_rng(0).random((50, 2)) * 4
    options = planner_options(max_rates=np.full(2, 4.0))
    first = planner_of(name, FIGURE_1, options)
    sent = [
        traffic.rows for planner in first.planners if name != EXACT for traffic in planner.exchange.traffic().values()
    ]
    following = planner_of(name, slower, options, first)
    new = planner_of(name, slower, options)
    assert following.plan(rates).scores == pytest.approx(new.plan(rates).scores, rel=1e-12)
    if name != EXACT:
        rows = [
            sum(traffic.rows for traffic in planner.planners[0].exchange.traffic().values())
            for planner in (following, new)
        ]
        assert sum(sent) < rows[0] < sum(sent) + rows[1]


def test_what_a_planner_lacks_is_said() -> None:
    with pytest.raises(UsageError, match="highest rate of each input"):
        planner_of(DropPlanner.SOLVER, FIGURE_1)
    with pytest.raises(UsageError, match="give it a workload"):
        planned(DropPlanner.SOLVER_W, FIGURE_1, [[1, 1]])
    with pytest.raises(UsageError, match="epsilon must be above 0 and below 1"):
        planner_options(epsilon=1.0)
    with pytest.raises(UsageError, match="headroom must be from 0 to below 1"):
        planner_options(headroom=1.0)
