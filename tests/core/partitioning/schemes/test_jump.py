from itertools import pairwise

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.partitioning.schemes.jump import JumpHash, _jump


def plain(word, channels):
    """Figure 1 of the paper, word for word."""
    last, following = -1, 0
    while following < channels:
        last = following
        word = (word * 2862933555777941757 + 1) % 2**64
        following = int((last + 1) * (float(1 << 31) / float((word >> 33) + 1)))
    return last


@pytest.mark.parametrize(
    ("word", "channels", "channel"),
    [(1, 1, 0), (42, 57, 43), (0xDEAD10CC, 1, 0), (0xDEAD10CC, 666, 361), (256, 1024, 520)],
)
def test_a_word_jumps_where_other_implementations_say(word, channels, channel):
    out = np.empty(1, np.int32)
    _jump(np.array([word], np.uint64), channels, out)
    assert out.tolist() == [plain(word, channels)] == [channel]


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(1, 2**31 - 1))
def test_a_key_goes_where_the_figure_sends_it(keys, channels):
    placed = JumpHash(channels).channels_of(pa.array(keys, pa.binary())).tolist()
    assert placed == [plain(mmh3.hash64(key, 0, signed=False)[0], channels) for key in keys]


def test_each_new_channel_takes_its_share_from_all_others():
    keys = pa.array(range(100_000))
    for before, after in pairwise([JumpHash(n).channels_of(keys) for n in range(1, 12)]):
        newest = after.max()
        moved = before != after
        assert set(after[moved].tolist()) == {newest}
        assert set(before[moved].tolist()) == set(range(newest))
        # Five deviations of a binomial share of 1/N.
        assert abs(moved.sum() - 1e5 / (newest + 1)) < 5 * np.sqrt(1e5 / (newest + 1))
