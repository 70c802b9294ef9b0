from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.splitting.split import Messages
from adapt.core.stream import Weight
from tests.core.partitioning.splitting.streams import messages_of

keys = st.lists(st.sampled_from(["a", "b", "", None, "ä"]), max_size=30)


def counted(counts):
    return frequencies_of(
        KeyCounts(
            pa.array([f"k{at}" for at in range(len(counts))], pa.string()), np.array(counts, np.int64), sum(counts)
        )
    )


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="2 messages do not fit 1 weights and 2 periods"):
        messages_of(["a", "b"], weights=[1.0])


@given(st.lists(st.integers(0, 20), max_size=10), st.integers(0, 2**32 - 1))
def test_whole_counts_are_met_exactly(counts, seed):
    frequencies = counted(counts)
    messages = Messages.of_counts(frequencies, np.random.default_rng(seed))
    met = np.bincount(messages.rows, minlength=len(frequencies.keys))
    assert met.tolist() == frequencies.count_low.tolist()
    assert messages.weights.tolist() == [1.0] * sum(counts)
    again = Messages.of_counts(frequencies, np.random.default_rng(seed))
    assert again.rows.tolist() == messages.rows.tolist()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50), st.integers(1, 200))
def test_fewer_messages_meet_each_count_to_a_step(counts, most):
    frequencies = counted(counts)
    messages = Messages.of_counts(frequencies, np.random.default_rng(0), most)
    assert len(messages.rows) == min(most, sum(counts))
    met = np.bincount(messages.rows, weights=messages.weights, minlength=len(counts))
    assert met.sum() == pytest.approx(sum(counts))
    step = messages.weights[0] if len(messages.weights) else 0
    assert (abs(met - frequencies.count_low) <= step * (1 + 1e-9)).all()


def test_costs_are_dealt_evenly_over_the_rows_that_were_counted():
    low = np.array([30.5, 10.0, 0.25])
    costs = replace(counted([3, 2, 1]), count_low=low, count_high=low, total=40.75, rows=500, weight=Weight.COST)
    messages = Messages.of_counts(costs, np.random.default_rng(0))
    assert len(messages.rows) == 500
    met = np.bincount(messages.rows, weights=messages.weights)
    assert met == pytest.approx(low, abs=40.75 / 500)


def test_unlisted_keys_have_stand_ins():
    lossy = replace(counted([50, 30]), total=100.0, rows=100, epsilon=0.01, complete_above=1.0, distinct=22)
    messages = Messages.of_counts(lossy, np.random.default_rng(0))
    assert len(messages.keys) == 22
    assert np.bincount(messages.rows).tolist() == [50, 30, *[1] * 20]
