"""An overloaded network's service against the paper's Table 1, and by what max-min fairness means."""

import numpy as np
import pytest

from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.direct_planners import service
from tests.core.fit.networks import FIGURE_1, SHAPES, random_network, random_rates

THIRD = 1 / 3

TABLE_1 = (
    # rates at A, load of A, throughput of A, load of B, throughput of B
    ((1, 1), 3, (THIRD, THIRD), 4 / 3, (1 / 4, 1 / 4)),
    ((THIRD, THIRD), 1, (THIRD, THIRD), 4 / 3, (1 / 4, 1 / 4)),
    ((1, 0), 1, (1, 0), 3, (THIRD, 0)),
    ((0, 1 / 2), 1, (0, 1 / 2), 1 / 2, (0, 1 / 2)),
    ((1 / 5, 2 / 5), 1, (1 / 5, 2 / 5), 1, (1 / 5, 2 / 5)),
)


@pytest.mark.parametrize(("reduced", "load_a", "out_a", "load_b", "out_b"), TABLE_1)
def test_table_1(reduced, load_a, out_a, load_b, out_b) -> None:
    wiring = Wiring.from_network(FIGURE_1)
    keeps = np.ones((1, 6))
    keeps[0, :2] = reduced
    given = service(wiring, np.ones((1, 2)), keeps)
    assert wiring.uses(given.arriving)[0] == pytest.approx([load_a, load_b], rel=1e-12)
    assert given.arriving[0, 2:4] == pytest.approx(out_a, rel=1e-12)
    assert given.arriving[0, 4:6] == pytest.approx(out_b, rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_nodes_serve_within_their_limits_and_leave_nothing_idle_that_is_wanted(shape: str) -> None:
    for seed in range(6):
        wiring = Wiring.from_network(random_network(seed, shape))
        rates = random_rates(seed, wiring.inputs, 5)
        given = service(wiring, rates, np.ones((5, len(wiring.arcs))))
        uses = wiring.uses(given.served)
        assert (uses <= 1 + 1e-9).all()
        short = given.served < given.arriving * (1 - 1e-9)
        for resource, row in enumerate(wiring.use):
            starved = (short & (row > 0)).any(axis=1)
            assert uses[starved, resource] == pytest.approx(1, rel=1e-9), seed
