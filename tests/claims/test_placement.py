"""FIT, sections 8.2.4 and 10: placement with few inputs per fragment, and shedding, on networks of 100 nodes.

Random networks whose operators need 1.5 times the capacity of all nodes. Placements are chosen for eight points of
rates and judged at forty others. "Balanced" gives the operators of most load, one by one, to the node of least.
"""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.registry import planner_of
from paper.fit.placement.coordination import coordination
from paper.fit.placement.problem import Problem
from paper.fit.placement.search import search
from tests.core.fit.large_networks import large_network
from tests.core.fit.options import planner_options

SEEDS, NODES, TRIES = (1, 2, 3, 4, 5), 100, 10_000
HEADROOM = 0.05


def drawn(network, seed, points):
    """Rates around those of the network, tuples/s."""
    rates = np.array([each.rate for each in network.inputs])
    return rates * np.random.default_rng([seed, points]).lognormal(0, 0.3, (points, len(rates)))


def balanced(network, rates):
    """The node of each operator, by load without drops."""
    wiring = Wiring.from_network(network)
    loads = wiring.use.sum(axis=0) * wiring.unshed(rates).mean(axis=0)
    of = wiring.target >= 0
    need = np.bincount(wiring.target[of] - wiring.inputs, loads[of])
    capacity, used, place = wiring.limits, np.zeros(len(network.nodes)), np.zeros(len(need), np.int64)
    for operator in np.argsort(-need, kind="stable"):
        place[operator] = ((used + need[operator]) / capacity).argmin()
        used[place[operator]] += need[operator]
    return place


def placements(seed):
    """By name: the problem at the judged rates, and each placement."""
    network = large_network(seed, NODES)
    known = drawn(network, seed, 8)
    found = {"random": Problem(network, known).first, "balanced": balanced(network, known)}
    for most in (4, 8):
        found[f"at most {most}"] = search(Problem(network, known, HEADROOM, most), tries=TRIES).place
    return Problem(network, drawn(network, seed, 40), HEADROOM), found


class Measured(dict):
    """Share of the bound, traffic, coordination, inputs, fragments by placement; shape (seeds, 5)."""

    problem, found = None, None


@pytest.fixture(scope="module")
def measured():
    rows = {}
    for seed in SEEDS:
        problem, found = placements(seed)
        for name, place in found.items():
            worth = problem.worth(place)
            placed = problem.network_of(place)
            sent = coordination(placed, problem.rates, HEADROOM)
            figures = (worth.score / problem.pooled[0], worth.traffic, sent, worth.inputs, worth.fragments)
            rows.setdefault(name, []).append(figures)
    figures = Measured({name: np.array(each) for name, each in rows.items()})
    figures.problem, figures.found = problem, found
    return figures


def test_placement_and_shedding_together_score_more_and_send_less_than_shedding_alone(measured):
    for together in ("at most 4", "at most 8"):
        for alone in ("random", "balanced"):
            assert (measured[together][:, 0] > 1.04 * measured[alone][:, 0]).all(), "score"
        assert (measured[together][:, 1] < 0.6 * measured["balanced"][:, 1]).all(), "bytes between nodes"


def test_fragments_have_as_few_inputs_as_asked(measured):
    assert (measured["at most 4"][:, 3] <= 4).all()
    assert (measured["at most 8"][:, 3] <= 8).all()
    assert (measured["balanced"][:, 3] > 50).all(), "otherwise all inputs are in one fragment"


def test_tables_become_possible(measured):
    """C-FIT refuses the network as it was; in small fragments, it has a table or exact plans for each."""
    problem, found = measured.problem, measured.found
    options = planner_options(headroom=HEADROOM, epsilon=0.2, max_rates=problem.rates.max(axis=0), max_plans=20_000)
    with pytest.raises(UsageError, match="c-fit"):
        planner_of(DropPlanner.C_FIT, problem.network_of(found["balanced"]), options)
    planner = planner_of(DropPlanner.C_FIT, problem.network_of(found["at most 4"]), options)
    best = problem.worth(found["at most 4"]).score
    assert planner.plan(problem.rates).scores.mean() > 0.8 * best
