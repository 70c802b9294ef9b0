"""The frontier over windows: what is measured is right, and plans use the past alone."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.out_of_sample.frontier import frontier_over_windows
from adapt.core.out_of_sample.windows import Windows, loads_of
from adapt.core.partitioning.frontier.search import rebalance
from adapt.core.partitioning.frontier.today import Budget, Today

WORK = 100_000


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


@pytest.mark.parametrize("still", [True, False])
def test_the_imbalance_out_of_sample_is_that_of_plans_from_the_past(still):
    windows = windows_of(zipf(12, still))
    found = frontier_over_windows(windows, work=WORK)
    for point in found.points:
        later = []
        for upto in range(6, 12):
            past, on = windows.shares[:, :upto].sum(axis=1), windows.loads[:, :upto].sum(axis=1)
            residual = np.maximum(on - np.bincount(windows.home, past, 8), 0)
            placed = rebalance(Today(past, past, windows.home, residual, np.ones(8)), point.budget, work=WORK)
            loads = np.bincount(placed, windows.shares[:, upto], 8)
            later.append(loads.max() / loads.mean())
        assert point.out_of_sample == pytest.approx(np.median(later))
        total = np.bincount(point.placed, windows.shares.sum(axis=1), 8)
        assert point.imbalance == pytest.approx(total.max() / total.mean())
        assert point.pins == (point.placed != windows.home).sum()


def test_keys_that_stay_are_worth_pins_and_keys_that_move_on_are_not():
    stay, move = (frontier_over_windows(windows_of(zipf(12, still)), work=WORK) for still in (True, False))
    assert stay.knee.pins > 0
    assert stay.knee.out_of_sample < 0.95 * stay.points[0].out_of_sample
    assert move.knee.out_of_sample <= move.points[0].out_of_sample
    assert max(point.out_of_sample for point in move.points) > move.points[0].out_of_sample * 0.98


def test_too_few_windows_have_no_imbalance_out_of_sample():
    found = frontier_over_windows(windows_of(zipf(5)), work=WORK)
    assert all(point.out_of_sample is None for point in found.points)
    assert "out_of_sample" not in [column.name for column in found.table().columns]


def test_limits_hold_for_every_point():
    windows = windows_of(zipf(8, keys=1500))
    found = frontier_over_windows(windows, Budget(0.05, 4), WORK)
    assert all(point.pins <= 4 and point.state_moved <= 0.05 for point in found.points)
    assert "out_of_sample" in [column.name for column in found.table().columns]
    assert replace(found.knee, placed=None) in [replace(point, placed=None) for point in found.points]
