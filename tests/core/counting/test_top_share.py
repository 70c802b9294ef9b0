"""The share of the heaviest key, listed or not."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.frequencies import Frequencies, top_share


def bounded(low, high, complete_above, total=1000.0):
    low, high = np.array(low, np.int64), np.array(high, np.int64)
    names = pa.array(range(len(low)), pa.int64())
    return Frequencies(names, low, high, total, 1000, epsilon=0.1, complete_above=complete_above)


@pytest.mark.parametrize(
    ("low", "high", "complete_above", "share"),
    [
        ([294, 6], [294, 6], 0.0, (0.294, 0.294)),
        ([80, 70], [90, 130], 50.0, (0.08, 0.13)),
        ([20], [20], 30.0, (0.02, 0.03)),
        ([], [], 30.0, (0, 0.03)),
        ([], [], 0.0, (0, 1)),
    ],
)
def test_the_heaviest_key_may_be_one_that_is_not_listed(low, high, complete_above, share):
    assert top_share(bounded(low, high, complete_above)) == share


def test_without_weight_there_is_none():
    assert top_share(bounded([], [], 0.0, 0.0)) is None
