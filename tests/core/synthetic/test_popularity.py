"""Keys that drift and die, against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.random_bits import substream, uniforms
from adapt.core.synthetic.popularity import DRIFTING_RANKS, MOST_DRIFTS, drifted, lived
from adapt.core.synthetic.variation import Drift, Variation


def plain_drift(rank, epoch, domain, share, seed):
    ranks = min(domain, DRIFTING_RANKS)
    keys = list(range(1, ranks + 1))
    for now in range(1, epoch + 1):
        drawn = uniforms(substream(seed, 2), np.arange(2 * ranks * now, 2 * ranks * (now + 1)))
        for at in range(ranks):
            if drawn[at] < share:
                other = min(int(math.exp(drawn[ranks + at] * math.log(ranks + 1.0))), ranks) - 1
                keys[at], keys[other] = keys[other], keys[at]
    return keys[rank - 1] if rank <= ranks else rank


@settings(max_examples=30)
@given(st.integers(1, 60), st.floats(0.01, 1), st.integers(0, 2**64 - 1), st.data())
def test_drift_is_that_of_a_plain_loop_whatever_was_asked_before(domain, share, seed, data):
    times = np.sort(np.array(data.draw(st.lists(st.floats(0, 50), min_size=1, max_size=20))))
    ranks = np.array(data.draw(st.lists(st.integers(1, domain), min_size=len(times), max_size=len(times))))
    drift = Drift(7.0, share)
    wanted = [plain_drift(rank, int(time // 7), domain, share, seed) for rank, time in zip(ranks, times, strict=True)]
    half = len(times) // 2
    # the later rows first: what is kept from them must not show
    assert drifted(ranks[half:], times[half:], domain, drift, seed).tolist() == wanted[half:]
    assert drifted(ranks, times, domain, drift, seed).tolist() == wanted


def test_a_drift_moves_about_its_share_of_the_heavy_ranks_and_none_of_the_light():
    ranks = np.arange(1, 10_001)
    keys = drifted(ranks, np.full(10_000, 1.5), 10_000, Drift(1.0, 0.1), 7)
    assert sorted(keys) == ranks.tolist()
    assert (keys[DRIFTING_RANKS:] == ranks[DRIFTING_RANKS:]).all()
    moved = np.count_nonzero(keys != ranks)
    assert 0.1 * DRIFTING_RANKS < moved < 0.2 * DRIFTING_RANKS


@given(st.floats(0.1, 100), st.integers(1, 50), st.integers(0, 1000))
def test_keys_live_equally_long_and_are_followed_by_fresh_ones(seconds, domain, seed):
    times = np.linspace(0, 10 * seconds, 400)
    for key in {1, domain}:
        keys = lived(np.full(400, key), times, domain, seconds, seed)
        assert keys[0] == key
        assert set(np.diff(keys)) <= {0, domain}
        assert keys[-1] in (key + 9 * domain, key + 10 * domain)
        _, rows = np.unique(keys, return_counts=True)
        assert (np.abs(rows[1:-1] - 39.9) < 1.5).all()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Drift(0), "every_s must be above 0"),
        (lambda: Drift(1, 0), r"share must be above 0 and at most 1 \(got 0\)"),
        (lambda: Drift(1, 1.1), r"\(got 1.1\)"),
        (lambda: Variation(life_s=0), "life_s must be above 0"),
        (lambda: drifted(np.array([1]), np.array([MOST_DRIFTS + 1.0]), 5, Drift(1.0), 0), "more than 200,000"),
    ],
)
def test_what_cannot_be_is_refused(made, says):
    with pytest.raises(UsageError, match=says):
        made()
