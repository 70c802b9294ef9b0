"""C-FIT: how many rows, what they promise, and which points have a plan."""

import os
from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.coordinator import Fitting, fit
from adapt.core.fit.network.names import Grid, OperatorKind
from adapt.core.fit.network.network import Input, Link, Network, Node, Operator, Output
from adapt.core.fit.planners.basis import BasisPool
from adapt.core.fit.planners.direct_planners import NO_PLAN
from adapt.core.fit.planners.program import Program
from tests.core.fit.networks import FIGURE_1, FIGURE_7, SHAPES, chains, delay, random_network

SOAK = bool(os.environ.get("ADAPT_SOAK"))
POINTS = 100_000 if SOAK else 10_000


def parallel(inputs):
    """Figure 9 (b): a chain costs the same on both servers; 64 and 32 ms, less where there are more inputs."""
    scale = 2 / inputs / 1000
    return chains([(64 * scale, 64 * scale), (32 * scale, 32 * scale)] * (inputs // 2))


def crossed(inputs):
    """Its other reading: what costs more on one server costs less on the other."""
    scale = 2 / inputs / 1000
    return chains([(64 * scale, 32 * scale), (32 * scale, 64 * scale)] * (inputs // 2))


def made(network, epsilon, grid=Grid.SAFE, most=1e3, **options):
    """The tables, their planner, and the program."""
    program = Program.from_network(network)
    tables = fit(program, np.full(program.inputs, most), epsilon, Fitting(grid, **options))
    return tables, tables.planner(), program


def errors(planner, program, rates):
    """The part of the best score that each plan loses, by what its shares really give; which must fit."""
    plans = planner.plan(rates)
    flows = program.wiring.flows(rates, plans.keeps)
    assert (program.wiring.uses(flows) <= 1 + 1e-9).all()
    given = program.wiring.scores(flows)
    assert (given >= plans.scores * (1 - 1e-9) - 1e-12).all()
    _, best = BasisPool(program).plan(rates)
    return np.where(best > 0, 1 - given / np.where(best > 0, best, 1), 0.0), plans.ids


def spread_and_nasty(program, planner, points):
    """Points of all directions and sizes; just under rows; and just above where nothing needs to be dropped."""
    random, inputs = np.random.default_rng(11), program.inputs
    loads = program.unshed(np.eye(inputs)) @ program.rows[: program.resources].T / program.limits[: program.resources]
    alone = 1 / loads.max(axis=1)
    directions = random.exponential(size=(points, inputs)) * alone
    onto = directions / (directions @ loads).max(axis=1, keepdims=True)
    spread = onto[: points // 3] * random.uniform(1, 3, (points // 3, 1))
    edge = onto[points // 3 : 2 * points // 3] * (1 + 1e-6)
    table = planner.parts[0][0]
    if not len(table):
        return np.concatenate((spread, edge))
    under = table.low[random.integers(len(table), size=points // 3)]
    return np.concatenate((spread, edge, under * (1 - 1e-9), under + alone * 0.099))


@pytest.mark.parametrize(
    ("network", "rows"), [(parallel(2), 21), (parallel(4), 791), (crossed(2), 36), (crossed(4), 1434)]
)
def test_rows_at_ten_percent_are_as_many_as_cells_along_the_boundary(network, rows) -> None:
    # Full grids of ten steps that fit, 66, 1001, 81, 1644 rows, less those a cell below the edge.
    tables, _, _ = made(network, 0.1)
    assert [len(table) for table in tables.tables] == [rows]


@pytest.mark.parametrize("network", [FIGURE_1, parallel(2), crossed(2), parallel(4), crossed(4)])
def test_the_papers_triangle_leaves_points_without_a_plan_and_the_safe_one_none(network) -> None:
    _, safe, program = made(network, 0.1)
    rates = spread_and_nasty(program, safe, 3000)
    _, ids = errors(safe, program, rates)
    assert (ids != NO_PLAN).all()
    _, paper, _ = made(network, 0.1, Grid.PAPER)
    loss, ids = errors(paper, program, rates)
    without = (ids == NO_PLAN).any(axis=1)
    assert without.any()
    assert loss[without].max() < 1, "the same share of every input is kept"


GUARANTEED = [
    (FIGURE_1, 0.1),
    (FIGURE_7, 0.02),
    (parallel(2), 0.05),
    (crossed(2), 0.1),
    (chains([(0.3, 0.7), (0.9, 0.1), (0.5, 0.5)]), 0.2),
    (crossed(4), 0.1 if SOAK else 0.4),
    (random_network(3, "tree", nodes=2, inputs=2, size=5), 0.2),
]


@pytest.mark.parametrize(("network", "epsilon"), GUARANTEED)
def test_the_guaranteed_grid_loses_no_more_than_epsilon(network, epsilon) -> None:
    tables, planner, program = made(network, epsilon, Grid.GUARANTEED)
    assert tables.epsilon == epsilon
    loss, ids = errors(planner, program, spread_and_nasty(program, planner, POINTS))
    assert (ids != NO_PLAN).all()
    assert loss.max() <= epsilon + 1e-9


def test_the_guaranteed_grid_of_two_crossed_chains_has_104_rows() -> None:
    tables, _, _ = made(crossed(2), 0.1, Grid.GUARANTEED)
    assert [len(table) for table in tables.tables] == [104]


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_fit_and_give_what_they_say(shape: str) -> None:
    for seed in range(100 if SOAK else 4):
        network = random_network(seed, shape)
        program = Program.from_network(network)
        tables = fit(program, np.full(program.inputs, 2.0), 0.3, Fitting(max_rows=20_000))
        for table, _ in tables.planner(prune=False).parts:
            flows = table.flows @ program.flow.T
            assert (table.flows @ program.rows.T <= program.limits * (1 + 1e-9) + 1e-12).all(), seed
            assert program.wiring.scores(flows) == pytest.approx(table.scores, rel=1e-9, abs=1e-12), seed
            assert (table.flows <= program.upper(table.low) * (1 + 1e-9)).all(), seed


@pytest.mark.parametrize("shape", SHAPES)
def test_every_overloaded_point_of_a_random_network_has_a_plan(shape: str) -> None:
    for seed in range(100 if SOAK else 4):
        network = random_network(seed, shape)
        tables, planner, program = made(network, 0.2, most=4.0, max_rows=20_000)
        rates = np.random.default_rng(seed).random((300, program.inputs)) * 4
        loss, ids = errors(planner, program, rates)
        assert (ids != NO_PLAN).all(), seed
        assert loss.mean() <= 1.5 * tables.epsilon * program.inputs, seed


def test_a_union_divides_what_it_must_give_in_every_way() -> None:
    network = Network(
        (Node("A"), Node("B")),
        (Input("x"), Input("y")),
        (Operator("u", "A", OperatorKind.UNION, ("x", "y"), 0.1), delay("b", "B", "u", 1.0)),
        (Output("o", "b"),),
    )
    tables, planner, program = made(network, 0.1, most=10.0)
    rates = np.random.default_rng(0).random((500, 2)) * 3
    loss, ids = errors(planner, program, rates)
    assert (ids != NO_PLAN).all()
    assert loss.max() <= 0.2 + 1e-9
    assert tables.tables[0].rates.sum(axis=1).max() == pytest.approx(1.0)


def test_rows_keep_within_links() -> None:
    sized = tuple(replace(operator, out_bytes=10.0) for operator in FIGURE_1.operators)
    _, planner, program = made(replace(FIGURE_1, operators=sized, links=(Link("A", "B", 5.0),)), 0.05)
    assert (planner.parts[0][0].flows @ program.rows.T <= program.limits + 1e-9).all()
    loss, ids = errors(planner, program, np.random.default_rng(0).random((500, 2)))
    assert (ids != NO_PLAN).all()
    assert loss.max() <= 0.2


def test_what_c_fit_cannot_plan_is_said() -> None:
    circle = Network(
        (Node("A"), Node("B")),
        (Input("x"),),
        (delay("a", "A", "x", 1.0), delay("b", "B", "a", 1.0), delay("c", "A", "b", 1.0)),
        (Output("o", "c"),),
    )
    with pytest.raises(UsageError, match="no cycle"):
        made(circle, 0.1)
    worthless = Network(
        (Node("A"),),
        (Input("x"), Input("y")),
        (delay("a", "A", "x", 1.0), delay("b", "A", "y", 1.0)),
        (Output("o", "a"), Output("p", "b", 0.0)),
    )
    with pytest.raises(UsageError, match="every input to reach a weighted output; input 'y' does not"):
        made(worthless, 0.1, Grid.GUARANTEED)
