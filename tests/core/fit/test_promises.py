"""What every planner promises, on networks of all kinds, against the program written apart and solved by scipy."""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import DropPlanner, Grid
from adapt.core.fit.network.network import Input, Link, Network, Node, Output
from adapt.core.fit.network.settings import TableSettings
from adapt.core.fit.planners.direct_planners import BEST
from adapt.core.fit.planners.plan_table import CellBounds
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Observed
from adapt.core.fit.registry import Precomputed, planner_of
from adapt.core.fit.tables.local_plans import circle_of_nodes
from tests.core.fit.networks import any_network, delay, random_rates
from tests.core.fit.options import planner_options
from tests.core.fit.oracles import scipy_score

SEEDS = range(1000 if os.environ.get("ADAPT_SOAK") else 24)
EPSILON = 0.3
EXACT = (DropPlanner.EXACT, DropPlanner.LP, DropPlanner.D_FIT_CUTS)
ON_TREES = (DropPlanner.C_FIT, DropPlanner.D_FIT)


@cache
def case(seed):
    """A network, rates that its tables cover, the highest of these, and the best scores by scipy."""
    network = any_network(seed)
    unit = 1000.0 if max(operator.cost for operator in network.operators) > 100 else 1.0
    rates = random_rates(seed, len(network.inputs), 5) / unit
    return network, rates, 4.0 / unit, np.array([scipy_score(network, point) for point in rates])


def checked(name, network, rates, most, **options):
    """The score that the shares of a planner really give, and what it proves; no node or link is overloaded."""
    chosen = planner_options(max_rates=np.full(rates.shape[1], most), epsilon=EPSILON, max_plans=5000, **options)
    planner = planner_of(name, network, chosen)
    plans = planner.plan(rates)
    wiring = Program.from_network(network).wiring
    flows = wiring.flows(rates, plans.keeps)
    assert (wiring.uses(flows) <= 1 + 1e-9).all()
    scores = wiring.scores(flows)
    assert scores == pytest.approx(plans.scores, rel=1e-9, abs=1e-12)
    proofs = [each.proof for each in planner.planners if isinstance(each, Precomputed)]
    return scores, max((proof.epsilon for proof in proofs), default=0.0)


@pytest.mark.parametrize("name", [name for name in DropPlanner if name is not DropPlanner.NONE])
def test_no_plan_overloads_a_node_and_none_loses_more_than_is_proved(name: DropPlanner, promise) -> None:
    points = 0
    for seed in SEEDS:
        network, rates, most, best = case(seed)
        if name in ON_TREES and circle_of_nodes(Program.from_network(network).wiring):
            with pytest.raises(UsageError, match="no cycle"):
                checked(name, network, rates, most)
            continue
        scores, proved = checked(name, network, rates, most, workload=Observed(rates))
        near = 1e-7 * np.maximum(best, 1e-6)
        points += len(rates)
        assert (scores <= best + near).all(), seed
        if name in EXACT:
            assert (scores >= best - near).all(), seed
        if name in (*ON_TREES, DropPlanner.SOLVER):
            assert (scores >= (1 - proved) * best - near).all(), seed
        if name is DropPlanner.C_FIT:
            assert proved <= EPSILON, seed
    promise("shedding").checked(points)


def straight(bytes_per_s=500.0):
    """A chain of two nodes that could do 1,000 tuples/s, over a link that carries fewer."""
    return Network(
        (Node("A"), Node("B")),
        (Input("in", out_bytes=1.0),),
        (replace(delay("a", "A", "in", 0.001), out_bytes=1.0), delay("b", "B", "a", 0.001)),
        (Output("out", "b"),),
        (Link("A", "B", bytes_per_s),),
    )


@pytest.mark.parametrize("name", [DropPlanner.C_FIT, DropPlanner.D_FIT])
@pytest.mark.parametrize("grid", Grid)
def test_a_straight_chain_with_a_link_keeps_what_the_link_carries(name: DropPlanner, grid: Grid) -> None:
    scores, proved = checked(name, straight(), np.array([[600.0], [2000.0]]), 2000.0, grid=grid)
    assert scores == pytest.approx([500, 500])
    assert proved == pytest.approx(0.0, abs=1e-9)


def test_nothing_is_promised_of_tuples_that_an_operator_of_selectivity_0_would_emit() -> None:
    network = Network(
        (Node("A"), Node("B")),
        (Input("x"), Input("y")),
        (
            delay("none", "A", "x", 0.5, 0.0),
            delay("some", "A", "y", 0.5),
            delay("behind", "B", "none", 0.5),
            delay("b", "B", "some", 0.8),
        ),
        (Output("never", "behind", 5.0), Output("out", "b")),
    )
    for grid in Grid:
        scores, proved = checked(DropPlanner.C_FIT, network, np.array([[4.0, 4.0], [0.5, 3.0]]), 4.0, grid=grid)
        assert (scores >= (1 - proved) * 1.25).all()
    assert scores == pytest.approx([1.25, 1.25])


def test_a_cell_that_could_lose_more_is_planned_exactly() -> None:
    network, rates, most, _ = case(6)
    options = planner_options(max_rates=np.full(3, most), epsilon=EPSILON)
    repaired, raw = (
        planner_of(DropPlanner.C_FIT, network, replace(options, tables=TableSettings(grid)))
        for grid in (Grid.GUARANTEED, Grid.SAFE)
    )
    (proof,), (other,) = ([each.proof for each in planner.planners] for planner in (repaired, raw))
    assert other.epsilon == 1.0
    assert other.unproved == proof.unproved == pytest.approx(1 / 9)
    assert (repaired.plan(rates).ids == BEST).any()
    beyond = np.full((1, 3), 2 * most)
    assert repaired.plan(beyond).ids.tolist() == [[BEST]]


def test_a_bound_holds_everywhere_in_its_cell_with_few_lines_too(monkeypatch) -> None:
    from adapt.core.fit.distributed.coordinator import fit
    from adapt.core.fit.planners.basis import BasisPool
    from tests.core.fit.distributed.test_coordinator import crossed

    program, most, random = Program.from_network(crossed(2)), np.full(2, 60.0), np.random.default_rng(0)
    tables = fit(program, most, 0.1)
    rates = random.uniform(0, 60, (20_000, 2))
    planner = tables.planner()
    best = BasisPool(program).plan(rates)[1]
    lost = 1 - planner.plan(rates).scores / best
    whole = CellBounds.from_tables(program, [table for table, _ in tables.parts()], most)
    assert (lost <= whole.at(rates) + 1e-12).all()
    assert whole.errors.max() < lost.max() + 0.02
    monkeypatch.setattr("adapt.core.fit.planners.plan_table.MAX_CELLS", 30)
    few = CellBounds.from_tables(program, [table for table, _ in tables.parts()], most)
    assert few.errors.size <= 30
    assert (lost <= few.at(rates) + 1e-12).all()
