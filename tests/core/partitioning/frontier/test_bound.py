"""Bounds of the imbalance within a budget: never above the optimum, and near it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.partitioning.frontier.bound import bound_of_today, exact_bound, whole_floor
from adapt.core.partitioning.frontier.today import Budget
from tests.tiers import SOAK

from .cases import keeps, least_of_all, tiny_step, zipf_step

ROUNDING = 1 + 1e-9


def test_no_bound_is_above_the_best_of_all_placements():
    ratios = []
    for seed in range(120 if SOAK else 40):
        step, budget = tiny_step(seed)
        least, home = least_of_all(step, budget), np.asarray(step.home)
        bound, placed, proved = exact_bound(step, budget, home)
        assert keeps(step, budget, placed), f"seed {seed}"
        assert proved, f"seed {seed}"
        assert abs(bound - least) <= 1e-7 * least, f"seed {seed}"
        relaxed = bound_of_today(step, budget)
        assert whole_floor(step) <= least * ROUNDING, f"seed {seed}"
        assert 1 <= relaxed <= least * ROUNDING, f"seed {seed}"
        ratios.append(least / relaxed)
    print(f"\noptimum / relaxation: mean {np.mean(ratios):.3f}, worst {max(ratios):.3f}")
    assert np.mean(ratios) < 1.02


@given(st.integers(0, 10_000), st.floats(0, 1), st.integers(0, 40))
def test_a_larger_budget_never_has_a_higher_bound(seed, share, pins):
    step, _ = zipf_step(seed, 1, 60)
    both = bound_of_today(step, Budget(share, pins))
    assert bound_of_today(step, Budget(share)) <= both * ROUNDING
    assert bound_of_today(step, Budget(None, pins)) <= both * ROUNDING
    assert bound_of_today(step, Budget(share / 2, pins)) >= both / ROUNDING
    assert bound_of_today(step, Budget(share, pins // 2)) >= both / ROUNDING


def test_without_a_budget_nothing_moves():
    step, _ = zipf_step(1, 60, 60)
    for budget in (Budget(0.0), Budget(None, 0)):
        assert bound_of_today(step, budget) >= step.imbalance(step.home) * (1 - 1e-8)
