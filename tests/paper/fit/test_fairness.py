"""Max-min fair flows by hand, and against the least that other plans give."""

import numpy as np
import pytest

from adapt.core.fit.planners.highs import WarmProgram
from adapt.core.fit.planners.program import Program
from paper.fit.fairness import fairest
from tests.core.fit.networks import FIGURE_1, random_network, random_rates

ONES = np.ones(2)


def test_max_min_fairness_keeps_a_quarter_of_each() -> None:
    program = Program.from_network(FIGURE_1)
    flows = fairest(program, ONES)
    assert flows == pytest.approx([1 / 4, 1 / 4], rel=1e-9)
    assert program.weights @ flows == pytest.approx(1 / 2, rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_gives_the_worst_query_more_than_the_fairest(seed: int) -> None:
    program = Program.from_network(random_network(seed, "dag"))
    rates = random_rates(seed, program.inputs, 1)[0] + 1 / 16
    outputs = np.flatnonzero(program.wiring.target < 0)
    unshed = program.wiring.unshed(rates[None])[0, outputs]

    def least(flows):
        return np.min((program.flow[outputs] @ flows) / unshed)

    fair = least(fairest(program, rates))
    assert fair >= least(WarmProgram(program).flows(rates)) - 1e-8
    random = np.random.default_rng(seed)
    for _ in range(20):
        keeps = random.random((1, len(program.wiring.arcs))) ** 0.3
        flows = program.wiring.flows(rates[None], keeps)
        flows /= max(1.0, program.wiring.uses(flows).max())
        assert fair >= np.min(flows[0, outputs] / unshed) - 1e-8
