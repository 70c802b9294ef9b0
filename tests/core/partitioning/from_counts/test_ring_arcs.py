import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.keys.names import HashName
from adapt.core.partitioning.from_counts.ring_arcs import Arcs
from adapt.core.partitioning.loads.load import ResourceFunction
from adapt.core.partitioning.schemes.consistent import ConsistentHash

LINEAR, QUADRATIC = ResourceFunction.LINEAR, ResourceFunction.QUADRATIC
KEYS = pa.array([f"key-{number}" for number in range(300)])
COUNTS = np.arange(300.0)


@st.composite
def rings(draw):
    """The most replicas of each channel, and two rings of no more, each of the first so many channels."""
    most = draw(st.lists(st.integers(1, 20), min_size=1, max_size=8))
    sizes = draw(st.lists(st.integers(1, len(most)), min_size=2, max_size=2))
    before, after = (draw(st.tuples(*(st.integers(1, each) for each in most[:size]))) for size in sizes)
    return np.array(most), before, after


def arcs_of(most, hash):
    ring = ConsistentHash(len(most), tuple(most.tolist()), hash)
    return Arcs.from_replicas(ring, ring.replicas_of(KEYS), {LINEAR: COUNTS, QUADRATIC: COUNTS**2})


@given(rings(), st.sampled_from(HashName))
def test_channels_carry_what_a_ring_of_so_many_replicas_sends_them(rings, hash):
    most, counts, _ = rings
    placed = ConsistentHash(len(counts), counts, hash).channels_of(KEYS)
    for function in (LINEAR, QUADRATIC):
        expected = np.bincount(placed, function.costs(COUNTS), len(counts))
        assert arcs_of(most, hash).loads_on(np.array(counts), function).tolist() == expected.tolist()


@given(rings(), st.sampled_from(HashName))
def test_what_moves_between_channels_that_stay_is_what_routing_says(rings, hash):
    most, before, after = rings
    left, met = (ConsistentHash(len(counts), counts, hash).channels_of(KEYS) for counts in (before, after))
    stay = min(len(before), len(after))
    moved = COUNTS[(left != met) & (left < stay) & (met < stay)].sum()
    assert arcs_of(most, hash).moved(np.array(before), np.array(after), LINEAR) == moved
