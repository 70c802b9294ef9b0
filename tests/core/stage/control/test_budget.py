import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Drawn, Made
from adapt.core.stage.control.budget import Budgeted
from adapt.core.stage.dag.assembly import DagControl
from adapt.core.stage.dag.settings import DagSettings, Edge
from adapt.core.stage.dag.simulation import simulate_dag
from tests.core.stage.engine.test_running_stage import small
from tests.core.stage.movement.test_protocol import AnyMoves


@pytest.mark.parametrize("joint", [True, False])
def test_a_budget_bounds_the_state_that_is_moved_whoever_decides(joint):
    of = DagSettings((small(3, 6), small(3, 4)), (Edge(0, 1),))
    budget, span_s, largest = 5e6, 0.5, int(of.stages[0].state_sizes().max()) * 80
    controllers = [AnyMoves(1), AnyMoves(2)]
    control = DagControl(controllers[0], movement_bytes_per_s=budget)
    if not joint:
        control = DagControl(each=controllers, movement_bytes_per_s=budget)
    run = simulate_dag(of, (Drawn(), Made()), span_s, control, interval_s=0.5)
    moved = sum(move.state_bytes for stage in run.stages for move in stage.moves)
    assert budget * span_s * 0.7 < moved <= budget * span_s + 2 * largest
    free = simulate_dag(of, (Drawn(), Made()), span_s, DagControl(AnyMoves(1)), interval_s=0.5)
    assert sum(move.state_bytes for stage in free.stages for move in stage.moves) > 2 * moved


@pytest.mark.parametrize("budget", [0.0, -1.0, np.nan])
def test_a_budget_that_is_not_above_0_is_refused(budget):
    with pytest.raises(UsageError, match="above 0"):
        Budgeted(AnyMoves(0), budget)
