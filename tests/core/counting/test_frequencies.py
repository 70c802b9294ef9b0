"""Counted keys: what is known of any key, and the keys that reach a share."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.lossy import LossyCounter

rows = st.lists(st.none() | st.sampled_from(["", *"aaaaabbcdefg"]), min_size=1, max_size=120)
epsilons = st.sampled_from([0.25, 0.1, 1 / 7])


def lossy(keys, epsilon):
    counter = LossyCounter(epsilon, pa.string(), flush_rows=1)
    counter.update(pa.array(keys, pa.string()))
    return counter.summary().frequencies(epsilon)


def exact(keys):
    return frequencies_of(count_keys(pa.array(keys, pa.string())))


@given(rows, epsilons, st.sampled_from([pa.string(), pa.large_string()]))
def test_every_key_weighs_within_its_interval_listed_or_not(keys, epsilon, kind):
    asked = [*dict.fromkeys(keys), "never seen"]
    true = Counter(keys)
    for counted in (lossy(keys, epsilon), exact(keys)):
        low, high = counted.intervals(pa.array(asked, kind))
        assert low.shape == high.shape == (len(asked),)
        for key, least, most in zip(asked, low, high, strict=True):
            assert max(true[key] - counted.epsilon * len(keys) * (1 + 1e-12), 0) <= least <= true[key] <= most
    assert low.tolist() == high.tolist() == [true[key] for key in asked]


def test_intervals_by_hand():
    counted = Frequencies(
        pa.array(["a", None]), np.array([7, 4]), np.array([7, 6]), 20.0, 20, epsilon=0.1, complete_above=2.0
    )
    low, high = counted.intervals(pa.array([None, "b", "a", "", "a"]))
    assert (low.tolist(), high.tolist()) == ([4, 0, 7, 0, 7], [6, 2, 7, 2, 7])


def test_keys_of_another_type_are_refused():
    with pytest.raises(ValueError, match="keys must be string"):
        exact(["a"]).intervals(pa.array([1]))
    with pytest.raises(ValueError, match="keys must be string"):
        exact(["a"]).intervals(pa.array([b"a"]))


def test_dropped_keys_may_still_weigh_its_upper_bound():
    counted = Frequencies(
        pa.array(["a", "b", "c"]),
        np.array([50, 12, 11]),
        np.array([50, 13, 19]),
        total=100.0,
        rows=100,
        epsilon=0.1,
        complete_above=10.0,
    )
    assert counted.first(1).complete_above == 19
    assert counted.first(1).keys.to_pylist() == ["a"]
    assert counted.first(3) is counted
