"""What is measured of planners is what they do: plans that are lost, rows that are sent, expected errors."""

import json
from math import exp

import numpy as np
import pytest

from adapt.core.fit.distributed.coordinator import Fitting, fit
from adapt.core.fit.network.names import Grid
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Exponential, Regions
from paper.experiments import described
from paper.fit.figures.cut import planned
from paper.fit.figures.dimensions import close_after, row_bytes
from paper.fit.figures.overhead import share
from paper.fit.figures.provision import PROVISIONED_RATE, expected_rates
from paper.fit.measured import (
    MOST_RATE,
    Converged,
    Described,
    Gridded,
    Matched,
    Planned,
    Resent,
    _expected,
    loads_of,
    overloaded_points,
)
from paper.fit.networks import PAIRS, Reading, fan_out, two_chains, two_servers
from paper.fit.scope import C_FIT, EPSILON, SOLVER, Scope, chained
from tests.core.fit.oracles import scipy_score

PARALLEL, CROSSED = chained("parallel", (64.0, 32.0)), chained("crossed", (64.0, 32.0))
POINTS = 400


def of(network, planner, epsilon=0.1, mean_rate=0.0, points=POINTS, kept=0):
    return Planned(network, planner, epsilon, mean_rate, points, kept, 1, 3)


def rows_of(network, grid, epsilon=0.1):
    program = network.program()
    (table,) = fit(program, np.full(program.inputs, MOST_RATE), epsilon, Fitting(grid)).tables
    return table


@pytest.mark.parametrize("network", [PARALLEL, CROSSED])
def test_points_without_a_plan_lie_above_no_row_of_the_papers_cut(network):
    table = rows_of(network, Grid.PAPER)
    points = of(network, C_FIT["paper"], kept=POINTS).measure([])["points"]
    lost = [lacks for *_, lacks in points]
    assert any(lost)
    for x, y, error, lacks in points:
        below = (table.rates <= [x, y]).all(axis=1)
        assert lacks == (not below.any())
        best = scipy_score(network.network(), (x, y))
        got = table.scores[below].max(initial=0.0)
        assert error == pytest.approx(1 - got / best, abs=1e-7)


@pytest.mark.parametrize("network", [PARALLEL, CROSSED])
def test_only_the_papers_cut_leaves_points_without_a_plan(network):
    told = {grid: of(network, planner).measure([]) for grid, planner in C_FIT.items()}
    assert told["paper"]["worst"] == 1
    assert told["paper"]["without"] > 0
    assert told["safe"]["without"] == told["guaranteed"]["without"] == 0
    assert told["guaranteed"]["worst"] <= 0.1 < told["safe"]["worst"] < 0.25
    assert [told[grid]["plans"] for grid in C_FIT] == [len(rows_of(network, grid)) for grid in Grid]


def test_points_are_overloaded_within_the_box_and_of_all_directions():
    program = CROSSED.program()
    points = overloaded_points(program, POINTS, 5)
    assert len(points) > 0.95 * POINTS
    assert ((points @ loads_of(program)).max(axis=1) > 1).all()
    assert points.max() <= MOST_RATE
    assert (points[:, 0] > points[:, 1]).mean() == pytest.approx(0.5, abs=0.1)
    assert np.array_equal(points, overloaded_points(program, POINTS, 5))


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


def test_solver_w_reaches_what_solver_expects():
    solver = of(CROSSED, SOLVER, EPSILON, 5.0)
    given = solver.measure([])
    told = Matched(solver).measure([given])
    assert Matched(solver).needs == (solver,)
    assert told["threshold"] == given["expected"]
    assert 0 < told["expected"] <= given["expected"] * (1 + 1e-9)
    assert told["plans"] < given["plans"]


def test_convergence_falls_with_the_plans():
    steps = Converged(PARALLEL, 3.0, (1, 16, 256), 0).measure([])
    assert [step["plans"] for step in steps] == sorted(step["plans"] for step in steps)
    expected = [step["expected"] for step in steps]
    assert expected == sorted(expected, reverse=True)
    assert close_after(steps) == next(step["plans"] for step in steps if step["expected"] <= 0.01)
    assert close_after(steps[:1]) == 1


@pytest.mark.parametrize(
    ("network", "points"), [(PARALLEL, 66), (CROSSED, 81), (chained("parallel", (64.0, 32.0), 4), 1001)]
)
def test_full_grids_have_as_many_points_as_fit(network, points):
    assert Gridded(network, (), 0.1).measure([]) == points


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


@pytest.mark.parametrize(("inputs", "size"), [(2, 52), (4, 96), (8, 184)])
def test_rows_have_the_sizes_of_table_3(inputs, size):
    assert row_bytes(inputs) == size


def test_a_fifth_of_the_points_needs_no_shedding_at_the_provisioned_rate():
    heavy, light = 0.064 * PROVISIONED_RATE, 0.032 * PROVISIONED_RATE
    # Two exponential loads of these means add up to at most 1.
    assert 1 - (heavy * exp(-1 / heavy) - light * exp(-1 / light)) / (heavy - light) == pytest.approx(0.2, abs=1e-5)


@pytest.mark.parametrize("branches", [2, 8])
def test_a_tree_has_branches_that_differ(branches):
    network = fan_out(branches)
    costs = [operator.cost for operator in network.operators[1:]]
    assert len(set(costs)) == branches
    assert sum(costs) == pytest.approx(0.088)
    assert Program.from_network(network).inputs == 1


def test_a_chain_changes_in_its_last_operator_alone():
    before, after = two_chains(60, 36, 48, 48), two_chains(60, 36, 48, 48, 0.5)
    changed = [old.name for old, new in zip(before.operators, after.operators, strict=True) if old != new]
    assert changed == ["B0"]


def test_an_experiment_is_described_by_plain_data():
    told = described(Matched(planned(Scope.quick())[next(iter(planned(Scope.quick())))][0]))
    assert json.loads(json.dumps(told))["solver"]["network"] == {
        "name": "two_servers",
        "arguments": [["heavy_ms", 64.0], ["inputs", 2], ["light_ms", 32.0], ["reading", "parallel"]],
    }


def test_figure_12_is_the_distribution_of_two_exponential_rates():
    draws = np.random.default_rng(0).standard_exponential((400_000, 2))
    for mean in (2.0, 5.0, 10.0):
        cells = {row[1:3]: row[3] for row in expected_rates().rows if row[0] == mean}
        counts, *_ = np.histogram2d(*(draws * mean).T, bins=[np.arange(0, 41)] * 2)
        assert sum(cells.values()) == pytest.approx((1 - exp(-40 / mean)) ** 2, abs=1e-3)
        assert max(
            abs(counts[int(x), int(y)] / len(draws) - share) / np.sqrt(share / len(draws))
            for (x, y), share in cells.items()
            if share > 1e-4
        ) == pytest.approx(0, abs=5)


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
