import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.compiled import compiled
from adapt.core.histogram import BINS, LEAST, MOST, bin_of, percentile, upper_edges


@compiled
def bins_of(latencies, found):
    for at in range(len(latencies)):
        found[at] = bin_of(latencies[at])


def counted(latencies):
    found = np.zeros(len(latencies), np.int64)
    bins_of(np.array(latencies, np.float64), found)
    return found


@given(st.lists(st.one_of(st.floats(0, 1e-6), st.floats(1e-6, 1.0), st.floats(1.0, 1e8), st.sampled_from([0.0, -1.0]))))
def test_a_latency_is_in_the_first_bin_that_ends_above_it_and_none_is_beyond_the_last(latencies):
    edges = upper_edges()
    literal = [next((at for at, edge in enumerate(edges) if latency < edge), BINS - 1) for latency in latencies]
    assert counted(latencies).tolist() == literal


@given(st.lists(st.floats(2 * LEAST, MOST / 2), min_size=1, max_size=60), st.floats(0.01, 1), st.integers(0, 5))
def test_a_percentile_is_at_most_a_32nd_above_the_true_one(latencies, share, empty):
    true = np.sort(latencies)[max(0, int(np.ceil(share * len(latencies) - 1e-9)) - 1)]
    counts = np.bincount(counted(latencies), minlength=BINS)
    first = max(0, int(np.flatnonzero(counts)[0]) - empty)
    found = percentile(counts, share)
    assert true <= found <= true * (1 + 1 / 32)
    assert percentile(counts[first:], share, first) == found


def test_bins_follow_each_other_and_reach_from_nanoseconds_to_days():
    edges = upper_edges()
    assert len(edges) == BINS
    assert (np.diff(edges) > 0).all()
    assert LEAST < 1e-8
    assert MOST > 86400 * 20
    assert edges[-1] == MOST
