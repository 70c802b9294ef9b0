"""What is measured of planners is what they do: plans that are lost, rows that are sent, expected errors."""

from math import exp

import numpy as np
import pytest

from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Exponential, Regions
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
from paper.fit.scope import EPSILON, SOLVER, chained

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
