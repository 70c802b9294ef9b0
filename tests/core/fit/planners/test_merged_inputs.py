"""Alike inputs planned as one: the best score by scipy, plans that fit, smaller tables."""

import numpy as np
import pytest

from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.direct_planners import LinearProgram
from adapt.core.fit.planners.fragments import FragmentPlanner
from adapt.core.fit.planners.program import Program
from adapt.core.fit.registry import planner_of
from tests.core.fit.networks import any_network, chains, doubled, random_rates
from tests.core.fit.options import planner_options
from tests.core.fit.oracles import scipy_score

PLANNERS = (DropPlanner.SOLVER, DropPlanner.C_FIT, DropPlanner.D_FIT)


def merged(network):
    """The best plans, with alike inputs merged."""
    return FragmentPlanner(network, lambda part: LinearProgram(Program.from_network(part.network)), merge=True)


@pytest.mark.parametrize("network", [*map(doubled, range(12)), *map(any_network, range(24))])
def test_merging_loses_nothing(network):
    rates = random_rates(1, len(network.inputs), 4)
    plans, wiring = merged(network).plan(rates), Wiring.from_network(network)
    flows = wiring.flows(rates, plans.keeps)
    best = [scipy_score(network, each) for each in rates]
    assert wiring.scores(flows) == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert plans.scores == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert (wiring.uses(flows) <= 1 + 1e-9).all()


def test_most_doubled_streams_are_merged():
    sizes = [sum(len(part.inputs) for part in merged(doubled(seed)).fragments) for seed in range(12)]
    assert sizes.count(2) >= 4
    assert set(sizes) == {2, 3}


@pytest.mark.parametrize("name", PLANNERS)
def test_the_paper_s_eight_inputs_take_the_tables_of_two(name):
    """Figure 14's network: four chains of each of two kinds; plans fit, and lose what those of two inputs may lose."""
    two, eight = (chains([(0.016, 0.016), (0.008, 0.008)] * number) for number in (1, 4))
    rates = np.random.default_rng(3).uniform(0, 30, (50, 8))
    most = np.full(8, 30.0)
    of_two = planner_of(name, two, planner_options(epsilon=0.1, max_rates=np.full(2, 120.0)))
    of_eight = planner_of(name, eight, planner_options(epsilon=0.1, max_rates=most))
    plans, wiring = of_eight.plan(rates), Wiring.from_network(eight)
    flows = wiring.flows(rates, plans.keeps)
    assert (wiring.uses(flows) <= 1 + 1e-9).all()
    sums = rates.reshape(50, 4, 2).sum(axis=1)
    assert wiring.scores(flows) == pytest.approx(of_two.plan(sums).scores, rel=1e-9)
    assert of_eight.planners[0].size == of_two.planners[0].size
