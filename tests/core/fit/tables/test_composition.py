"""Composed tables: how few rows remain, and that they lose no more than is promised."""

import os
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.coordinator import Fitting, fit, proved
from adapt.core.fit.network.names import Grid, RateSteps
from adapt.core.fit.network.network import Input, Network, Node, Output
from adapt.core.fit.planners.plan_table import MixedPlanner
from adapt.core.fit.planners.program import Program
from adapt.core.fit.tables.composition import covered
from tests.core.fit.networks import delay
from tests.core.fit.oracles import scipy_score

TREES = 500 if os.environ.get("ADAPT_SOAK") else 20
POINTS = 8


def star(children, shared=False, cost=1 / 8):
    """A node that feeds leaves: each by an input of its own, or all by one."""
    sources = ["in"] * children if shared else [f"in{child}" for child in range(children)]
    at_root = [delay("root", "A", "in", cost)] if shared else []
    at_root += [] if shared else [delay(f"a{child}", "A", sources[child], cost) for child in range(children)]
    leaves = [
        delay(f"b{child}", f"L{child}", "root" if shared else f"a{child}", 1 + child / 4) for child in range(children)
    ]
    return Network(
        (Node("A"), *(Node(f"L{child}") for child in range(children))),
        tuple(map(Input, dict.fromkeys(sources))),
        (*at_root, *leaves),
        tuple(Output(f"o{child}", f"b{child}", 1.0 + child % 3) for child in range(children)),
    )


def random_tree(seed):
    """A tree of nodes with splits, outputs at inner nodes, and several inputs."""
    random = np.random.default_rng([seed, 32])
    nodes, inputs = int(random.integers(2, 7)), int(random.integers(1, 4))
    above = [0, *(int(random.integers(node)) for node in range(1, nodes))]
    at = {f"in{number}": 0 for number in range(inputs)}
    unread, operators = list(at), []
    for number in range(int(random.integers(inputs + 2, 10))):
        source = str(random.choice(unread if random.random() < 0.5 else list(at)))
        below = [node for node in range(1, nodes) if above[node] == at[source]]
        node = int(random.choice(below)) if below and not source.startswith("in") else at[source]
        cost, selectivity = float(random.integers(1, 9)) / 8, float(random.choice([0.5, 1.0, 1.5]))
        operators.append(delay(f"op{number}", f"n{node}", source, cost, selectivity))
        at[f"op{number}"] = node
        unread = [name for name in unread if name != source] + [f"op{number}"]
    return Network(
        tuple(Node(f"n{node}", float(random.choice([0.5, 1.0, 2.0]))) for node in range(nodes)),
        tuple(Input(f"in{number}") for number in range(inputs)),
        tuple(operators),
        tuple(Output(f"out {name}", name, float(random.integers(1, 4))) for name in unread),
    )


def made(network, epsilon, steps, apart, max_rows=5_000, most=4.0):
    """The planner of guaranteed tables, without repairs."""
    program, highest = Program.from_network(network), np.full(len(network.inputs), most)
    tables = fit(program, highest, epsilon, Fitting(Grid.GUARANTEED, max_rows, steps, apart, epsilon))
    return proved(program, tables.parts(), epsilon, highest, epsilon, guaranteed=True)


def lost(network, planner, rates):
    """The share of the best score by scipy that the shares kept really lose; no node is overloaded."""
    plans, wiring = planner.plan(rates), planner.program.wiring
    flows = wiring.flows(rates, plans.keeps)
    assert (wiring.uses(flows) <= 1 + 1e-9).all()
    best = np.array([scipy_score(network, point) for point in rates])
    return 1 - wiring.scores(flows) / np.where(best > 0, best, 1.0)


def near_rows(planner, random, points):
    """Points anywhere, and points just under the rates of rows."""
    rates = random.random((points, planner.program.inputs)) * 4
    table = planner.parts[int(random.integers(len(planner.parts)))][0]
    if not len(table):  # where everything fits
        return rates
    rows = table.low[random.integers(len(table), size=points // 2)]
    rates[: points // 2] = np.where(rows > 0, rows * (1 - 1e-9), rates[: points // 2])
    return rates


@pytest.mark.parametrize("steps", RateSteps)
@pytest.mark.parametrize("apart", [False, True])
def test_no_composed_table_loses_more_than_it_promises(steps: RateSteps, apart: bool) -> None:
    mixed = checked = 0
    for seed in range(TREES):
        network, epsilon = random_tree(seed), (0.15, 0.3)[seed % 2]
        with suppress(UsageError):
            planner = made(network, epsilon, steps, apart)
            loss = lost(network, planner, near_rows(planner, np.random.default_rng(seed), POINTS))
            assert planner.proof.epsilon is not None
            assert planner.proof.epsilon <= epsilon
            assert loss.max() <= planner.proof.epsilon + 1e-7, seed  # the feasibility tolerance of scipy
            checked += 1
            mixed += isinstance(planner, MixedPlanner)
    assert checked > (0.6 if apart else 0.4) * TREES  # the others need too many rows
    assert mixed > 0.1 * TREES or not apart


@pytest.mark.parametrize("steps", RateSteps)
@pytest.mark.parametrize("shared", [False, True])
def test_twelve_leaves_lose_no_more_than_15_percent(steps: RateSteps, shared: bool) -> None:
    network = star(12, shared, 0.25)
    planner = made(network, 0.15, steps, apart=not shared)
    assert isinstance(planner, MixedPlanner) is not shared
    random = np.random.default_rng(0)
    rates = random.exponential(1.0, (20, planner.program.inputs)).clip(0, 4)
    assert lost(network, planner, rates).max() <= 0.15 + 1e-9
    assert planner.size <= (5_000 if not shared else 500)


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.4]))
def test_every_row_has_one_below_it_that_scores_almost_as_much(seed: int, loss: float) -> None:
    random = np.random.default_rng(seed)
    rows = random.integers(0, 5, (40, 3)).astype(float)
    scores = rows.sum(axis=1) + random.integers(0, 3, 40)
    kept = covered(rows, scores, loss)
    for row, score in zip(rows, scores, strict=True):
        below = (rows[kept] <= row).all(axis=1)
        assert scores[kept][below].max() >= (1 - loss) * score - 1e-12


def test_rows_that_no_other_one_represents_stay() -> None:
    rows, scores = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 9.0, 10.0, 20.0])
    assert covered(rows, scores, 0.1).tolist() == [0, 1, 3]
    assert covered(rows, scores, 0.05).tolist() == [0, 1, 2, 3]
    assert covered(np.array([[1.0], [1.0]]), np.array([2.0, 3.0]), 0.0).tolist() == [1]
