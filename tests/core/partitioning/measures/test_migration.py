"""The bill of a change of partitioner."""

import numpy as np
import pytest

from adapt.core.partitioning.measures.metrics import migration


def of(*channels: int):
    return np.array(channels, dtype=np.int32)


def test_moved_keys_are_charged_their_state_against_an_average_channel():
    bill = migration(of(0, 0, 1, 1), of(0, 2, 1, 2), np.array([5.0, 3.0, 2.0, 2.0]), channels=3)
    assert (bill.keys, bill.state, bill.ideal) == (2, 5, 4)
    assert bill.relative == 1.25


def test_keys_of_a_removed_channel_have_moved():
    bill = migration(of(0, 1, 2), of(0, 1, 1), np.ones(3), channels=2)
    assert (bill.keys, bill.relative) == (1, pytest.approx(2 / 3))


def test_without_any_state_there_is_no_relative_cost():
    assert migration(of(0), of(1), np.zeros(1), channels=2).relative is None


def test_a_key_may_be_several():
    represented = np.array([1, 2.5, 2.5, 2.5])
    bill = migration(of(0, 0, 0, 1), of(1, 1, 0, 0), np.array([8.0, 4.0, 4.0, 4.0]), 2, represented)
    assert (bill.keys, bill.state, bill.ideal) == (6, 16, 10)
