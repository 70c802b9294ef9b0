"""Costs for the model: as the chain says, else from what was measured."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.ordered.chain.names import CostSource
from adapt.core.ordered.engine.reference import OperatorTally
from adapt.core.ordered.engine.settings import Contention
from adapt.core.ordered.model.model import given_costs, is_given, measured_costs
from tests.core.ordered.chains import bound, counting, stateful, stateless


def tally(name: str, inputs: int, outputs: int, busy_us: float, batches: int) -> OperatorTally:
    in_use = np.zeros(32, np.int64)
    in_use[1], in_use[2] = batches // 2, batches - batches // 2
    none = np.zeros(1, np.int64)
    return OperatorTally(name, inputs, outputs, none, round(busy_us * 1000), in_use=in_use)


class Clock:
    """CPU seconds that pass while the chain runs."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_cost_is_the_least_cpu_time_of_five_runs_without_the_time_that_the_model_adds() -> None:
    """The machine gives the worker less of a core each time: its clock runs on, its CPU time does not."""
    chain = bound([stateless("a"), stateless("b", cost=3.0), counting("c"), replace(stateful("d"), cost="cost")], 10)
    clock, passes = Clock(), [0]

    def run() -> list[OperatorTally]:
        passes[0] += 1
        slower = 1 + (passes[0] - 1) // 2 % 5  # two passes a run
        clock.now_s += 1230e-6 * (1 + 0.1 * slower)
        return [
            tally("a", 100, 50, 200.0 * slower, 100),
            tally("b", 50, 50, 900.0 * slower, 50),
            tally("c", 50, 50, 30.0 * slower, 10),
            tally("d", 50, 0, 100.0 * slower, 50),
        ]

    costs = measured_costs(chain, run, Contention(send_us=0.5, output_us=0.2), clock, 2e-3)
    assert passes == [10]
    assert costs.us == (pytest.approx((220 - 50 - 10) / 100), 3.0, pytest.approx((33 - 5 - 10) / 50), None)
    assert costs.highest_us == (pytest.approx((300 - 60) / 100), None, pytest.approx((45 - 15) / 50), None)
    assert costs.selectivities == (0.5, 1.0, 1.0, 0.0)
    assert costs.sources == (CostSource.THREADS, CostSource.CHAIN, CostSource.THREADS, CostSource.CHAIN)


def test_no_cost_is_below_0_and_an_operator_without_input_has_none() -> None:
    chain = bound([stateless("a"), stateful("b")], 10)
    tallies = [tally("a", 10, 0, 1.0, 10), tally("b", 0, 0, 5.0, 0)]
    costs = measured_costs(chain, lambda: tallies, Contention(send_us=1.0), Clock(), 0.0)
    assert costs.us == (0.0, 0.0)


def test_a_chain_that_says_all_needs_no_measuring() -> None:
    said = bound([stateless("a", 0.5, cost=1.0), replace(stateful("b"), cost="cost")], 10)
    assert is_given(said)
    assert given_costs(said).us == (1.0, None)
    assert given_costs(said).selectivities == (0.5, 1.0)
    assert not is_given(bound([stateless("a", cost=1.0), counting("c")], 10))
