"""Why the busiest worker is busy."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.verdict.busiest import busiest


@pytest.mark.parametrize(
    ("loads", "placed", "cause"),
    [
        (np.r_[200.0, np.ones(400)], np.r_[0, np.arange(400) % 4], "a hot key"),
        (np.ones(24), np.r_[np.zeros(5), np.arange(19) % 4], "both hot keys and luck"),
        (np.ones(400), np.r_[np.zeros(40), np.arange(360) % 4], "luck of the hash"),
        (np.ones(400), np.r_[np.zeros(150), np.arange(250) % 4], "neither a hot key nor luck of the hash"),
    ],
)
def test_the_cause_is_a_hot_key_or_luck_or_neither(loads, placed, cause):
    keys = pa.array([f"k{at}" for at in range(len(loads))])
    found = busiest(keys, loads, loads, placed.astype(np.int32), np.ones(4), "kafka")
    assert f"It is {cause}: " in found.sentence
