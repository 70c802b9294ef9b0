"""Planning with a budget of work: the best plans so far, and what is proved of them."""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.program.basis_pool import BasisPool
from adapt.core.fit.program.program import Program
from adapt.core.fit.registry import PlannerOptions, planner_of
from tests.core.fit.networks import FIGURE_1

BUDGETS = (60, 250, 1000, 4000, 64_000)


def within(name, budget, epsilon=0.03):
    """A planner made with a budget."""
    options = PlannerOptions(max_rates=np.full(2, 4.0), epsilon=epsilon, plan_budget=budget)
    return planner_of(name, FIGURE_1, options).planners[0]


@pytest.mark.parametrize("name", [DropPlanner.SOLVER, DropPlanner.C_FIT])
def test_more_work_proves_more_and_every_proof_holds(name: DropPlanner) -> None:
    rates = np.random.default_rng(0).random((500, 2)) * 4
    best = BasisPool(Program.from_network(FIGURE_1)).plan(rates)[1]
    proved = []
    for budget in BUDGETS:
        planner = within(name, budget)
        proof = planner.proof
        assert (1 - planner.plan(rates).scores / best).max() <= proof.epsilon + 1e-9
        work, steps = zip(*proof.reached, strict=True)
        assert work[-1] <= budget
        assert list(steps) == sorted(steps, reverse=True)
        assert steps[-1] == pytest.approx(proof.epsilon)
        proved.append(proof.epsilon)
    assert proved == sorted(proved, reverse=True)
    assert proved[-1] <= 0.03 + 1e-9 < proved[0]


def test_a_larger_budget_begins_like_a_smaller_one() -> None:
    small, large = (within(DropPlanner.SOLVER, budget).proof.reached for budget in BUDGETS[1:3])
    assert large[: len(small) - 1] == small[:-1]


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="--tables plan-budget must suffice for a first table of c-fit"):
        within(DropPlanner.C_FIT, 1)
    with pytest.raises(UsageError, match="--tables plan-budget must be at least 1"):
        within(DropPlanner.SOLVER, 0)
