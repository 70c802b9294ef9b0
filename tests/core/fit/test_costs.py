"""Costs found from measurements, and values that cannot be meant."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import BadInput
from adapt.core.fit.network.wiring import Wiring, doubts
from adapt.core.fit.network_tables import fitted_costs
from tests.core.fit.networks import SHAPES, chains, random_network
from tests.tiers import SOAK


def measured(network, rates):
    """What nodes use at these rates."""
    wiring = Wiring.from_network(network)
    return wiring.uses(wiring.unshed(rates))[:, : len(network.nodes)]


def with_costs(network, random):
    """The network with other costs, as a file may have them."""
    factors = random.choice([0.2, 0.5, 3.0], len(network.operators))
    changed = zip(network.operators, factors.tolist(), strict=True)
    return replace(network, operators=tuple(replace(operator, cost=operator.cost * f) for operator, f in changed))


@pytest.mark.parametrize("shape", SHAPES)
def test_fitted_costs_give_the_measured_utilization(shape: str) -> None:
    for seed in range(20 if SOAK else 6):
        network, random = random_network(seed, shape), np.random.default_rng(seed)
        rates = random.uniform(0.1, 2, (40, len(network.inputs)))
        used = measured(network, rates)
        fitted = fitted_costs(with_costs(network, random), rates, used)
        assert measured(fitted.network, rates) == pytest.approx(used, rel=1e-6, abs=1e-9), seed
        assert max(fitted.table.values("residual"), default=0.0) < 1e-6
        for row, operator in zip(fitted.table.records(), _by_node(network), strict=True):
            if row["separate"] == "yes":
                assert row["cost"] == pytest.approx(operator.cost, rel=1e-6), seed


def _by_node(network):
    return [operator for node in network.nodes for operator in network.operators if operator.node == node.name]


def test_operators_whose_rates_move_together_keep_the_ratio_of_their_costs() -> None:
    network = chains([(0.3,), (0.1,)])
    rates = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])
    fitted = fitted_costs(network, rates, 2 * measured(network, rates))
    assert [operator.cost for operator in fitted.network.operators] == pytest.approx([0.6, 0.2])
    assert fitted.table.values("separate") == ["no", "no"]


def test_noise_leaves_a_residual_and_no_cost_below_0() -> None:
    random = np.random.default_rng(0)
    network = chains([(0.3,), (0.001,)])
    rates = random.uniform(0, 3, (300, 2))
    used = np.maximum(measured(network, rates) + random.normal(0, 0.05, (300, 1)), 0.0)
    fitted = fitted_costs(network, rates, used)
    costs = [operator.cost for operator in fitted.network.operators]
    assert costs[0] == pytest.approx(0.3, rel=0.05)
    assert costs[1] >= 0
    assert fitted.table.values("residual")[0] == pytest.approx(0.05, rel=0.2)


def test_a_node_that_was_never_used_has_no_costs_to_find() -> None:
    with pytest.raises(BadInput, match="node 'A' has no utilization"):
        fitted_costs(chains([(0.3,)]), np.ones((3, 1)), np.zeros((3, 1)))


def test_units_and_weights_that_cannot_be_right_are_doubted() -> None:
    network = chains([(1000.0,), (1.0,)])
    (doubt,) = doubts(Wiring.from_network(network), np.array([[0.1, 0.1], [2.0, 1.0]]))
    assert doubt.startswith("A would need 2,001 times its capacity; check units: cost is in CPU seconds per tuple")
    assert "('A0' needs 1000)" in doubt
    worthless = replace(network, outputs=tuple(replace(output, weight=0.0) for output in network.outputs))
    assert next(doubts(Wiring.from_network(worthless), np.zeros((1, 2)))).startswith("every output has weight 0")
    assert list(doubts(Wiring.from_network(chains([(1.0,)])), np.array([[49.0]]))) == []
