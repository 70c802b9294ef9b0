"""Exact planners against the program written out and solved by scipy, by rational arithmetic, and by each other."""

import os
from dataclasses import replace

import numpy as np
import pytest

from adapt.core.fit.network.network import Network
from adapt.core.fit.planners.basis import BasisPool
from adapt.core.fit.planners.highs import WarmProgram
from adapt.core.fit.planners.program import Program
from tests.core.fit.networks import SHAPES, chains, random_network, random_rates
from tests.core.fit.oracles import rational_score, scipy_score

SOAK = bool(os.environ.get("ADAPT_SOAK"))


@pytest.mark.parametrize("shape", SHAPES)
def test_500_random_networks_are_planned_as_by_scipy_and_highs(shape: str) -> None:
    for seed in range(100, 1100 if SOAK else 150):
        network = random_network(seed, shape)
        program = Program.from_network(network)
        rates = random_rates(seed, program.inputs, 12)
        flows, scores = BasisPool(program).plan(rates)
        within = program.limits * (1 + 1e-9) + 1e-9
        assert (flows @ program.rows.T <= within).all(), seed
        assert (flows <= program.upper(rates) * (1 + 1e-12)).all()
        assert scores == pytest.approx(flows @ program.weights, rel=1e-12)
        solved = WarmProgram(program).flows(rates[7]) @ program.weights
        assert scores[7] == pytest.approx(solved, rel=1e-9, abs=1e-12), seed
        assert scores[7] == pytest.approx(scipy_score(network, rates[7]), rel=1e-9, abs=1e-12), seed


@pytest.mark.parametrize("shape", SHAPES)
def test_small_networks_are_planned_as_by_rational_arithmetic(shape: str) -> None:
    for seed in range(300, 700 if SOAK else 310):
        network = random_network(seed, shape, size=4)
        program = Program.from_network(network)
        rates = random_rates(seed, program.inputs, 3)
        _, scores = BasisPool(program).plan(rates)
        exact = [float(rational_score(network, point)) for point in rates]
        assert scores == pytest.approx(exact, rel=1e-12, abs=1e-15), seed


def test_a_pool_that_knows_the_bases_solves_no_more_programs() -> None:
    pool = BasisPool(Program.from_network(chains([(0.3, 0.7, 0.2), (0.9, 0.1, 0.4), (0.5, 0.5, 0.8)])))
    rates = np.random.default_rng(0).random((3000, 3)) * 4
    first = pool.plan(rates)
    solved = pool.solved
    again = pool.plan(rates[::-1])
    assert pool.solved == solved == pool.bases
    assert again[1][::-1] == pytest.approx(first[1], rel=1e-12)


def test_a_pool_that_is_full_still_plans_exactly() -> None:
    program = Program.from_network(chains([(0.3, 0.7), (0.9, 0.1), (0.5, 0.5)]))
    rates = np.random.default_rng(0).random((50, 3)) * 4
    full = BasisPool(program, most=1)
    assert full.plan(rates)[1] == pytest.approx(BasisPool(program).plan(rates)[1], rel=1e-12)
    assert full.bases == 1


def test_inputs_that_are_alike_keep_the_same_share() -> None:
    pool = BasisPool(Program.from_network(chains([(16.0, 8.0), (8.0, 16.0)] * 4)))
    rates = np.random.default_rng(1).random((200, 8)) / 10
    flows, _ = pool.plan(rates)
    shares = flows / rates
    assert shares[:, ::2] == pytest.approx(np.repeat(shares[:, :1], 4, axis=1), rel=1e-9)
    assert pool.bases < 10


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_of_rates_and_costs_change_nothing(factor: float) -> None:
    network = random_network(5, "dag", nodes=3, inputs=3, size=6)
    other: Network = replace(
        network, operators=tuple(replace(operator, cost=operator.cost * factor) for operator in network.operators)
    )
    rates = random_rates(5, 3, 100)
    _, scores = BasisPool(Program.from_network(network)).plan(rates)
    _, scaled = BasisPool(Program.from_network(other)).plan(rates / factor)
    assert scaled * factor == pytest.approx(scores, rel=1e-11)
