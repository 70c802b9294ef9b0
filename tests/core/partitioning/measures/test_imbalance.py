"""Ratios of loads, and what they are when a channel is empty."""

import numpy as np
import pytest

from adapt.core.partitioning.measures.imbalance import empty_channels, max_over_mean, max_over_min, relative_imbalance


def test_ratios_by_hand():
    load = np.array([6.0, 2.0, 4.0])
    assert max_over_min(load) == 3
    assert max_over_mean(load) == 1.5
    assert empty_channels(load) == 0


def test_an_empty_channel_has_no_ratio_but_is_counted():
    load = np.array([6.0, 0.0, 0.0])
    assert max_over_min(load) is None
    assert max_over_mean(load) == 3
    assert empty_channels(load) == 2


def test_a_stream_without_any_weight_has_no_ratios():
    load = np.zeros(2)
    assert (max_over_min(load), max_over_mean(load), empty_channels(load)) == (None, None, 2)


def test_b_is_the_geometric_mean_of_ratios_over_tolerances():
    assert relative_imbalance([2.0, 4.0, 27.0], [2.0, 4.0, 1.0]) == pytest.approx(3)


def test_b_is_undefined_when_any_ratio_is():
    assert relative_imbalance([2.0, None, 1.0], [1.2, 1.2, 1.2]) is None
