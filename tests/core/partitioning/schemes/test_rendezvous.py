import math

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.rendezvous import Rendezvous

KEYS = pa.array([f"key-{number}" for number in range(100_000)])


def word(data):
    return mmh3.hash64(data, 0, signed=False)[0]


def bid(key, channel):
    mixed = word(key) ^ word(str(channel).encode())
    mixed = (mixed ^ mixed >> 33) * 0xFF51AFD7ED558CCD % 2**64
    mixed = (mixed ^ mixed >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return mixed ^ mixed >> 33


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(1, 30))
def test_the_highest_bid_has_the_key(keys, channels):
    placed = Rendezvous(channels).channels_of(pa.array(keys, pa.binary())).tolist()
    assert placed == [max(range(channels), key=lambda channel: bid(key, channel)) for key in keys]


@given(st.lists(st.binary(max_size=20), max_size=20), st.lists(st.floats(0.1, 10), min_size=1, max_size=12))
def test_weighted_bids_are_by_the_logarithm(keys, weights):
    def weighted(key, channel):
        return -weights[channel] / math.log(((bid(key, channel) >> 11) + 0.5) / 2**53)

    placed = Rendezvous(len(weights), weights=tuple(weights)).channels_of(pa.array(keys, pa.binary())).tolist()
    assert placed == [max(range(len(weights)), key=lambda channel: weighted(key, channel)) for key in keys]


@pytest.mark.parametrize("hash", HashName)
def test_channels_win_in_proportion_to_their_weights(hash):
    weights = np.array([1.0, 2.0, 3.0, 0.5, 10.0])
    placed = Rendezvous(5, hash, tuple(weights)).channels_of(KEYS)
    expected = len(KEYS) * weights / weights.sum()
    assert (abs(np.bincount(placed, minlength=5) - expected) < 5 * np.sqrt(expected)).all()


def test_equal_weights_are_no_weights():
    plain, weighted = Rendezvous(9), Rendezvous(9, weights=(2.5,) * 9)
    assert (plain.channels_of(KEYS) == weighted.channels_of(KEYS)).all()


def test_a_heavier_channel_takes_keys_and_nothing_else_moves():
    before, after = (Rendezvous(4, weights=(1.0, weight, 1.0, 1.0)).channels_of(KEYS) for weight in (1.0, 1.5))
    assert set(after[before != after].tolist()) == {1}


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 0.0), (1.0, -1.0), (1.0, math.inf), (1.0, math.nan)])
def test_impossible_weights_are_refused(weights):
    with pytest.raises(UsageError, match="must be 2 numbers above 0"):
        Rendezvous(2, weights=weights)
