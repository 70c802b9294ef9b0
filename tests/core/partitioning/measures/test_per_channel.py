"""Workers before and after."""

import json

import numpy as np
import pytest

from adapt.core.partitioning.measures.imbalance import relative
from adapt.core.partitioning.measures.per_channel import BeforeAfter


def test_loads_are_over_the_average_and_utilisations_over_that_of_all_capacity():
    assert relative(np.array([3.0, 1.0])).tolist() == [1.5, 0.5]
    assert relative(np.array([2.0, 1.0, 1.0]), np.array([2.0, 1.0, 1.0])).tolist() == [1.0, 1.0, 1.0]
    assert relative(np.zeros(2)).tolist() == [0, 0]


def test_the_fullest_before_comes_first_and_new_channels_by_what_they_have():
    found = BeforeAfter.from_loads("spark", np.array([0.5, 1.5]), "level", np.array([1.1, 0.9, 1.0]))
    assert found.rows == ((1, 1.5, 0.9), (2, None, 1.0), (0, 0.5, 1.1))
    assert found.table().values("before") == [1.5, None, 0.5]
    assert [column.bar for column in found.table().columns] == [False, True, True]


def test_the_worst_are_kept_and_come_back():
    found = BeforeAfter.from_loads("spark", np.array([0.5, 1.5]), "level", np.array([1.0, 1.0]))
    back = BeforeAfter.from_data(json.loads(json.dumps(found.as_data(1))))
    assert back.rows == ((1, 1.5, 1.0),)
    assert (back.placed_before, back.placed_after) == ("spark", "level")


def test_rounding_does_not_shift_the_average():
    assert relative(np.full(7, 0.1)) == pytest.approx(1)
