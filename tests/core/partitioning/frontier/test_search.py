"""The search of a placement: against all placements of tiny steps, its budgets, and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.partitioning.frontier.search import rebalance
from adapt.core.partitioning.frontier.today import Budget, Today
from tests.tiers import SOAK

from .cases import keeps, least_of_all, tiny_step, zipf_step

WORK = 200_000
ROUNDING = 1 + 1e-9


def today(loads, home, residual, state=None, capacities=None):
    loads = np.array(loads, float)
    return Today(
        loads,
        loads if state is None else np.array(state, float),
        np.array(home, np.int32),
        np.array(residual, float),
        np.ones(len(residual)) if capacities is None else np.array(capacities, float),
    )


def test_the_best_of_all_placements_of_tiny_steps_is_found():
    for seed in range(120 if SOAK else 40):
        step, budget = tiny_step(seed)
        placed = rebalance(step, budget, work=WORK)
        assert keeps(step, budget, placed), f"seed {seed}"
        assert step.imbalance(placed) <= least_of_all(step, budget) * ROUNDING, f"seed {seed}"


budgets = st.builds(Budget, st.none() | st.floats(0, 1), st.none() | st.integers(0, 40))


@given(st.integers(0, 10_000), budgets)
def test_budgets_are_kept_and_nothing_gets_worse(seed, budget):
    step, _ = zipf_step(seed, 1, 60)
    placed = rebalance(step, budget, work=WORK)
    assert keeps(step, budget, placed)
    assert placed.dtype == np.int32
    assert ((placed >= 0) & (placed < len(step.residual))).all()
    assert step.imbalance(placed) <= step.imbalance(step.home) * ROUNDING
    assert rebalance(step, budget, work=WORK).tolist() == placed.tolist()


@given(st.integers(0, 10_000), budgets)
def test_no_pin_is_for_nothing(seed, budget):
    step, _ = zipf_step(seed, 1, 60)
    placed = rebalance(step, budget, work=WORK)
    for key in np.flatnonzero(placed != step.home):
        without = placed.copy()
        without[key] = step.home[key]
        assert step.imbalance(without) > step.imbalance(placed)


def test_the_unit_of_loads_state_and_capacities_does_not_matter():
    step, _ = zipf_step(3, 60, 60)
    scaled = replace(
        step,
        loads=step.loads * 4,
        residual=step.residual * 4,
        state=step.state / 8,
        other_state=step.other_state / 8,
        capacities=step.capacities * 2,
    )
    budget = Budget(0.1)
    assert rebalance(scaled, budget, work=WORK).tolist() == rebalance(step, budget, work=WORK).tolist()


def test_one_pin_goes_to_the_key_that_helps_most():
    placed = rebalance(today([6, 5, 4, 1], [0, 0, 0, 1], [0, 0]), Budget(max_pins=1))
    assert placed.tolist() == [1, 0, 0, 1] or placed.tolist() == [0, 1, 0, 1]


def test_a_light_state_is_moved_instead_of_a_heavy_one():
    step = today([5, 5, 5, 5], [0, 0, 0, 0], [0, 0], state=[9, 1, 9, 1])
    assert rebalance(step, Budget(0.1)).tolist() == [0, 1, 0, 1]


def test_a_swap_is_made_where_no_move_helps():
    placed = rebalance(today([5, 4, 4, 3], [0, 0, 1, 1], [0, 0]), Budget())
    assert sorted(np.bincount(placed, [5, 4, 4, 3])) == [8, 8]


def test_a_wider_channel_gets_more():
    step = today([1] * 6, [0] * 6, [0, 0], capacities=[1, 2])
    assert np.bincount(rebalance(step, Budget())).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("loads", "home", "residual"), [([], [], [1, 2]), ([3, 2], [0, 0], [1]), ([0, 0], [0, 1], [0, 0])]
)
def test_where_nothing_can_be_gained_nothing_moves(loads, home, residual):
    assert rebalance(today(loads, home, residual), Budget()).tolist() == home


def test_limits_out_of_range_are_refused():
    with pytest.raises(UsageError, match=r"max_moved_state must be from 0 to 1 \(got 150%\)"):
        Budget(1.5)
    with pytest.raises(UsageError, match=r"max_pins must be at least 0 \(got -1\)"):
        Budget(None, -1)
    assert Budget(0.5, 3).within(Budget(0.2)) == Budget(0.2, 3)
