"""The counter that only counts its entries, against the one that counts keys."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.lossy import window_of
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.tracking import epsilon_for
from adapt.core.stream import KeyType
from paper.partitioning.counters import CounterSizes, entries_at_purges
from tests.core.counting.per_item import PerItemLossyCounter


@given(st.lists(st.integers(0, 9), max_size=200), st.sampled_from([0.5, 0.25, 0.1, 0.03]))
def test_entries_are_those_of_the_per_item_counter(ranks, epsilon):
    counter, window, expected = PerItemLossyCounter(epsilon, KeyType.INT64), window_of(epsilon), []
    for row, rank in enumerate(ranks, 1):
        held = set(counter.summary().keys.to_pylist()) | {rank}
        counter.add(rank)
        if row % window == 0:
            expected.append([len(held), counter.entries])
    assert entries_at_purges(np.array(ranks, np.int64), 10, window).tolist() == expected


def test_at_the_defaults_the_paper_s_2500_entries_lie_on_the_sawtooth():
    epsilon = epsilon_for(Resources.parse("LCL"), 10, 10**6)
    ((before, after),) = CounterSizes(10**6, 1.0, 0, 500_000, (epsilon,)).measure([])
    assert 600 <= after < 2500 < before <= 3600
