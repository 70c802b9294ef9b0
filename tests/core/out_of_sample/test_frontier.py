"""Plans to choose from: what is measured is right, plans use the past alone, and every limit holds."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.out_of_sample.frontier import WORK, Choices
from adapt.core.out_of_sample.walk_forward import Walk, Way
from adapt.core.out_of_sample.windows import Whole, Windows, loads_of
from adapt.core.partitioning.frontier.search import rebalance
from adapt.core.partitioning.frontier.today import NO_LIMITS, Budget, Today
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from tests.tiers import SOAK

NO_PINS = ExplicitMap(pa.array([], pa.int64()), [])


def windows_of(shares, channels=8):
    """Windows with these shares of keys, shape (keys, windows), the hottest at home together."""
    keys, number = shares.shape
    home, each = (np.arange(keys) * channels // keys).astype(np.int32), np.ones(channels)
    loads = loads_of(home, shares, each)
    times, ones = tuple(range(number)), np.ones(number)
    return Windows(times, (1000,) * number, pa.array(range(keys)), shares, home, loads, each, ones)


def zipf(number, still=True, keys=300, seed=1):
    chance = np.random.default_rng(seed)
    shares = 1 / np.arange(1, keys + 1)
    rows = [chance.multinomial(4000, shares / shares.sum()) / 4000 for _ in range(number)]
    return np.stack(rows if still else [chance.permutation(row) for row in rows], axis=1)


def choices_of(windows, limits=NO_LIMITS, *, has_windows=True):
    loads = windows.shares.sum(axis=1)
    whole = Whole(windows.keys, loads, loads, windows.home, windows.capacities)
    return Choices(whole, Walk.over(windows, limits) if has_windows else None, limits)


@pytest.mark.parametrize("still", [True, False])
def test_the_imbalance_out_of_sample_is_that_of_plans_from_the_past(still):
    windows = windows_of(zipf(12, still))
    found = choices_of(windows).frontier()
    budgets = [point for point in found.points if point.budget.max_moved_state is not None]
    assert budgets
    for point in budgets:
        past, on = windows.shares[:, :6].sum(axis=1), windows.loads[:, :6].sum(axis=1)
        residual = np.maximum(on - np.bincount(windows.home, past, 8), 0)
        placed = rebalance(Today(past, past, windows.home, residual, np.ones(8)), point.budget, work=WORK)
        later = [np.bincount(placed, windows.shares[:, at], 8).max() * 8 for at in range(6, 12)]
        assert point.out_of_sample == pytest.approx(np.median(later))


@settings(max_examples=100 if SOAK else 8)
@given(
    st.integers(0, 10_000),
    st.booleans(),
    st.none() | st.floats(0.001, 0.4),
    st.none() | st.integers(1, 20),
    st.sampled_from([0, 7, 12]),
)
def test_every_point_keeps_to_the_limits_and_is_what_it_says(seed, still, share, pins, number):
    windows, limits = windows_of(zipf(number or 1, still, 120, seed), 5), Budget(share, pins)
    found = choices_of(windows, limits, has_windows=number > 0)
    frontier, chosen = found.within()
    points = frontier.points
    load = windows.shares.sum(axis=1)
    assert points[0].pins == 0
    for point in points:
        assert point.keeps(limits)
        assert point.bound <= point.imbalance * (1 + 1e-9)
        assert (point.out_of_sample is None) == (number == 0)
    for at, bound in frontier.bounds:
        assert all(bound <= point.imbalance * (1 + 1e-9) for point in points if point.state_moved <= at)
    placed = found.whole.placed(chosen)
    total = np.bincount(placed, load, 5)
    assert frontier.recommended.judged == min(point.judged for point in frontier.points)
    assert frontier.recommended.imbalance == pytest.approx(total.max() / total.mean())
    assert frontier.recommended.pins == len(chosen) == (placed != windows.home).sum()
    assert frontier.recommended.state_moved == pytest.approx(load[placed != windows.home].sum() / load.sum())


@settings(max_examples=50 if SOAK else 5)
@given(st.integers(0, 10_000))
def test_more_budget_is_never_worse_in_sample(seed):
    windows = windows_of(zipf(1, True, 150, seed), 6)
    found = choices_of(windows, has_windows=False).frontier()
    for reached in (
        [found.within(Budget(share)).imbalance for share in (0, 0.01, 0.05, 0.2, 0.5, 1)],
        [found.within(Budget(None, pins)).imbalance for pins in (0, 1, 2, 5, 20, 150)],
    ):
        assert reached == sorted(reached, reverse=True)


def test_keys_that_stay_are_worth_pins_and_keys_that_move_on_are_not():
    stay, move = (choices_of(windows_of(zipf(12, still))).frontier() for still in (True, False))
    assert stay.knee.pins > 0
    assert stay.knee.out_of_sample < 0.95 * stay.points[0].out_of_sample
    assert move.knee.out_of_sample <= move.points[0].out_of_sample
    assert max(point.out_of_sample for point in move.points) > move.points[0].out_of_sample * 0.98


def test_the_plan_of_the_walk_is_marked_even_if_another_beats_it():
    windows = windows_of(zipf(12))
    choices = choices_of(windows)
    chosen = choices.walk.best(Way.KEPT, 1.0)
    pins = ExplicitMap(windows.keys.take(pa.array(chosen.moves.rows)), chosen.moves.channels)
    found = choices.frontier(pins, chosen.track.median)
    assert found.recommended in found.points
    assert (found.recommended.pins, found.recommended.out_of_sample) == (len(pins), chosen.track.median)
    assert found.names(found.recommended)[-1] == "recommended"
    assert choices.frontier(NO_PINS).recommended is choices.frontier(NO_PINS).points[0]
