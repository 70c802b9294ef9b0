"""The table of a leaf against the paper's numbers and a literal enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.fit.network.names import Grid
from adapt.core.fit.planners.program import Program
from adapt.core.fit.tables.local_plans import Part, worth_of_arrival
from adapt.core.fit.tables.rows import Bounds, GridLines, Spacing, TooManyRows
from adapt.core.fit.tables.server import Server, feasible_grid
from tests.core.fit.networks import FIGURE_7


def leaf(most, step):
    """The table of the only node of figure 7."""
    program = Program.from_network(FIGURE_7)
    server = Server(Part.from_program(program, 0, worth_of_arrival(program.wiring)))
    bounds = Bounds(server.entering, np.array([most]), np.array([np.inf]))
    return server.leaf_rows(bounds, Spacing(step, Grid.SAFE, max_rows=100))


def test_figure_7_takes_a_third_once_its_local_plan_is_applied() -> None:
    assert leaf(np.inf, 0.5).rates.max() == pytest.approx(1 / 3, rel=1e-12)
    assert leaf(0.25, 0.5).rates.max() == 0.25


def test_figure_7_a_row_at_a_fifth_scores_0_28() -> None:
    rows = leaf(0.2, 0.5)
    assert rows.rates[:, 0] == pytest.approx([0.1, 0.2])
    assert rows.scores == pytest.approx([0.2, 0.28], rel=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from(["none", "paper", "safe"]))
def test_the_grid_holds_what_fits_and_is_not_cut(seed: int, inputs: int, how: str) -> None:
    random = np.random.default_rng(seed)
    most = random.integers(1, 5, inputs) / 4
    steps = most / random.choice([1.0, 2.5, 4.0], inputs)
    loads = random.integers(0, 4, inputs) / 2
    corners = random.integers(1, 5, inputs) / 4 + 1 / 32
    cut = None if how == "none" else corners
    lines = [
        [most[j] - k * steps[j] for k in range(9) if most[j] - k * steps[j] > 1e-12] + [0.0] for j in range(inputs)
    ]
    expected = set()
    for point in product(*lines):
        above = np.array(point) + (steps if how == "safe" else 0)
        if np.dot(point, loads) <= 1 and (cut is None or (above / corners).sum() > 1):
            expected.add(tuple(np.round(point, 9)))
    found = feasible_grid(GridLines.fixed(most, steps), loads, 1.0, 10_000, cut, how == "safe")
    assert {tuple(np.round(point, 9)) for point in found} == expected
    assert len(found) == len(expected)


def test_more_rows_than_allowed_are_not_made() -> None:
    with pytest.raises(TooManyRows):
        feasible_grid(GridLines.fixed(np.ones(4), np.full(4, 0.1)), np.zeros(4), 1.0, 1000)
