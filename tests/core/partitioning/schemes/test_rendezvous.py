import mmh3
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.partitioning.schemes.jump import Rendezvous

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
