"""The solvers: no point may lose more than was promised, and the regions are those of the paper's rule."""

import os

import numpy as np
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.fit.planners.basis import BasisPool
from adapt.core.fit.planners.direct_planners import UNSHED
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Exponential, Observed, Regions
from tests.core.fit.networks import FIGURE_1, FIGURE_7, chains, random_network

SOAK = bool(os.environ.get("ADAPT_SOAK"))
POINTS = 100_000 if SOAK else 10_000


def divided(network, most, epsilon, workload=None, **options):
    """Regions, their planner, and the program."""
    program = Program.from_network(network)
    regions = Regions(program, np.array(most, float), workload)
    regions.divide(epsilon, **options)
    return regions, regions.planner(), program


def losses(planner, program, rates):
    """The part of the best score that each plan loses, by what its shares really give, which must fit."""
    plans = planner.plan(rates)
    flows = program.wiring.flows(rates, plans.keeps)
    assert (program.wiring.uses(flows) <= 1 + 1e-9).all()
    given = program.wiring.scores(flows)
    assert (given >= plans.scores * (1 - 1e-9) - 1e-12).all()
    _, best = BasisPool(program).plan(rates)
    return np.where(best > 0, 1 - given / np.where(best > 0, best, 1), 0.0)


def spread_and_nasty(planner, most, points):
    """Points of all directions and sizes, and points just below the top corners of regions."""
    random = np.random.default_rng(3)
    directions = random.exponential(size=(points // 2, len(most)))
    spread = directions / directions.max(axis=1, keepdims=True) * random.random((points // 2, 1)) * most
    tops = planner.parts[0][0].high
    tops = tops[random.integers(len(tops), size=points - points // 2)]
    return np.concatenate((spread, tops * (1 - 1e-9)))


CASES = [
    (FIGURE_1, [2.0, 2.0], 0.05),
    (chains([(0.064, 0.032), (0.032, 0.064)]), [100.0, 100.0], 0.05),
    (chains([(0.088, 0.088), (0.008, 0.008)]), [100.0, 100.0], 0.1),
    (FIGURE_7, [3.0], 0.01),
    (random_network(8, "dag", inputs=2, size=6), [4.0, 4.0], 0.1),
    (chains([(0.3, 0.7), (0.9, 0.1), (0.5, 0.5)]), [3.0, 2.0, 3.0], 0.2),
]


@pytest.mark.parametrize(("network", "most", "epsilon"), CASES)
def test_no_point_loses_more_than_epsilon(network, most, epsilon) -> None:
    _, planner, program = divided(network, most, epsilon)
    rates = spread_and_nasty(planner, np.array(most), POINTS)
    assert losses(planner, program, rates).max() <= epsilon + 1e-9


def test_regions_cover_overloaded_points_and_no_others_once() -> None:
    _, planner, program = divided(FIGURE_1, [2.0, 2.0], 0.1)
    rates = np.random.default_rng(0).random((300, 2)) * 2
    plans, table = planner.plan(rates), planner.parts[0][0]
    inside = ((rates[:, None] >= table.low) & (rates[:, None] < table.high)).all(axis=2)
    overloaded = ~program.feasible(rates)
    assert (inside.sum(axis=1) <= 1).all()
    assert (plans.ids[overloaded, 0] == inside[overloaded].argmax(axis=1) + 1).all()
    assert (plans.ids[~overloaded, 0] == UNSHED).all()


def test_two_equal_chains_take_307_points_and_81_plans() -> None:
    regions, _, _ = divided(chains([(0.048, 0.048), (0.048, 0.048)]), [100.0, 100.0], 0.05)
    assert (regions.plans, regions.corners()) == (81, 307)


def test_stopped_early_it_tells_its_error_so_far_which_holds() -> None:
    network, most = chains([(0.3, 0.7), (0.9, 0.1)]), np.array([4.0, 4.0])
    program, errors = Program.from_network(network), []
    regions = Regions(program, most)
    for budget in (4, 40, 400):
        regions.divide(0.0, max_plans=budget)
        assert regions.plans <= budget
        planner = regions.planner()
        assert losses(planner, program, spread_and_nasty(planner, most, 2000)).max() <= regions.error + 1e-9
        errors.append(regions.error)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.2


def test_points_beyond_the_box_are_planned_as_at_its_edge() -> None:
    _, planner, program = divided(FIGURE_1, [1.0, 1.0], 0.05)
    assert losses(planner, program, np.array([[50.0, 1.0], [1.0, 50.0], [70.0, 80.0]])).max() < 0.9


def test_an_input_that_never_comes_is_not_divided() -> None:
    regions, planner, program = divided(FIGURE_1, [2.0, 0.0], 0.05)
    rates = np.array([[2.0, 0.0], [0.5, 0.0]])
    assert losses(planner, program, rates).max() <= 0.05
    assert regions.plans < 40


@pytest.mark.parametrize(
    "workload", [Exponential(np.array([8.0, 8.0])), Observed(np.random.default_rng(1).exponential(8.0, (400, 2)))]
)
def test_by_a_workload_the_expected_error_holds_with_fewer_plans(workload) -> None:
    network = chains([(0.08, 0.08), (0.016, 0.016)])
    whole, _, _ = divided(network, [100.0, 100.0], 0.05)
    aware, planner, program = divided(network, [100.0, 100.0], 0.01, workload)
    assert aware.error <= 0.01
    assert aware.plans < whole.plans / 3
    random = np.random.default_rng(7)
    drawn = workload.rates if isinstance(workload, Observed) else random.exponential(8.0, (POINTS, 2))
    assert losses(planner, program, drawn).mean() <= 0.01


def test_the_table_shows_ids_conditions_and_scores() -> None:
    _, planner, program = divided(FIGURE_1, [2.0, 2.0], 0.3)
    made = planner.parts[0][0]
    table = made.table(program)
    assert table.values("plan") == list(range(1, len(made) + 1))
    assert table.values("score") == pytest.approx(made.scores.tolist())
    assert {"in0 from", "in0 to", "error", "keep in0 -> A0"} <= {column.name for column in table.columns}


def test_a_box_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="2 finite numbers"):
        Regions(Program.from_network(FIGURE_1), np.array([1.0, -1.0]))
    with pytest.raises(BadInput, match="above 0"):
        Exponential(np.array([1.0, 0.0]))
    with pytest.raises(BadInput, match="at least one row"):
        Observed(np.empty((0, 2)))
