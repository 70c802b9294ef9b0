"""A ring as a table: the same channel for every hash, at and beside every bound."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.spark.export import ring_table
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.consistent import ConsistentHash

WORD = st.integers(0, 2**64 - 1)


def looked_up(table, hashes):
    """The channels of some hashes, as an engine without unsigned numbers finds them."""
    buckets = (hashes >> np.uint64(table.shift)).astype(np.int64)
    signed = hashes.view(np.int64)
    steps = table.bounds.shape[1]
    channels = table.channels[buckets, steps]
    for step in reversed(range(steps)):
        channels = np.where(signed <= table.bounds[buckets, step], table.channels[buckets, step], channels)
    return channels


@given(st.integers(1, 9), st.integers(1, 40), st.lists(WORD, max_size=50))
def test_the_table_says_what_the_ring_says(channels, replicas, hashes):
    ring = ConsistentHash(channels, replicas, HashName.XXHASH64)
    positions = ring.positions.high
    asked = np.concatenate(
        [
            np.array([*hashes, 0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64),
            positions,
            positions + np.uint64(1),
            positions - np.uint64(1),
        ]
    )
    table = ring_table(ring)
    assert looked_up(table, asked).tolist() == ring.channels_at(asked, np.zeros_like(asked)).tolist()


def test_an_ordinary_ring_takes_few_comparisons_and_little_room():
    made = ring_table(ConsistentHash(8, 1_000, HashName.XXHASH64))
    assert made.bounds.shape[1] <= 9
    assert made.table().nbytes < 2_000_000
    columns = made.table().column_names
    assert columns[:4] == ["bucket", "channel_0", "bound_0", "channel_1"]
    assert columns[-1] == f"channel_{made.bounds.shape[1]}"


def test_a_single_channel_has_a_table_without_a_choice():
    assert set(ring_table(ConsistentHash(1, 5, HashName.XXHASH64)).channels.ravel().tolist()) == {0}
