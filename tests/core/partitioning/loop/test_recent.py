"""Sums over a window: of the parts that are inside, in rows or in time."""

import numpy as np
import pytest

from adapt.core.partitioning.loop.recent import RecentSums
from adapt.core.units.row_or_time_span import Length


@pytest.mark.parametrize(("window", "inside"), [(Length(25, in_rows=True), 3), (Length(30), 3), (Length(31), 4)])
def test_parts_leave_once_the_window_is_full_without_them(window, inside):
    recent, parts = RecentSums(window, 2), np.arange(20.0).reshape(10, 2)
    for number, part in enumerate(parts):
        recent.add(part, 10, 10.0 * number)
    np.testing.assert_allclose(recent.sums, parts[-inside:].sum(axis=0))


def test_shares_hold_for_what_is_inside_until_it_leaves():
    recent = RecentSums(Length(2), 2)
    recent.add(np.array([8.0, 0.0]), 8, 0)
    recent.share_out(np.array([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(recent.sums, [2, 2, 4])
    recent.add(np.array([0.0, 0.0, 1.0]), 1, 1)
    np.testing.assert_allclose(recent.sums, [2, 2, 5])
    recent.add(np.array([1.0, 0.0, 0.0]), 1, 2)
    np.testing.assert_allclose(recent.sums, [1, 0, 1])
