"""Loads of channels, by hand and against the plain sums."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.partitioning.measures.imbalance import channel_loads
from adapt.core.partitioning.measures.resources import Resources


def counted(counts: list[int]) -> Frequencies:
    """Keys "a", "b", ... of the given counts, which must fall."""
    keys = pa.array([chr(ord("a") + at) for at in range(len(counts))])
    return frequencies_of(KeyCounts(keys, np.array(counts), sum(counts)))


def test_each_letter_weighs_its_own_row():
    loads = channel_loads(np.array([0, 1, 0], dtype=np.int32), counted([5, 3, 2]), Resources.parse("CQL"), channels=3)
    assert loads.tolist() == [[2, 1, 0], [29, 9, 0], [7, 3, 0]]


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 3)), min_size=1, max_size=20),
    st.text("CLQ", min_size=3, max_size=3),
)
def test_loads_are_the_sums_of_the_equations(keys, letters):
    keys.sort(key=lambda pair: -pair[0])
    beta = {"C": lambda f: f**0, "L": lambda f: f, "Q": lambda f: f * f}
    placed = np.array([channel for _, channel in keys], dtype=np.int32)
    loads = channel_loads(placed, counted([count for count, _ in keys]), Resources.parse(letters), 4)
    for row, letter in zip(loads.tolist(), letters, strict=True):
        assert row == [sum(beta[letter](count) for count, at in keys if at == channel) for channel in range(4)]


def test_stand_ins_load_the_channels_that_they_are_routed_to():
    lossy = Frequencies(
        pa.array(["a"]),
        np.array([40]),
        np.array([50]),
        total=100.0,
        rows=100,
        epsilon=0.1,
        complete_above=10,
        distinct=7,
    )
    loads = channel_loads(np.array([0, 0, 0, 1, 1, 1, 1], dtype=np.int32), lossy, Resources.parse("CQL"), 2)
    assert loads.tolist() == [[3, 4], [1800, 400], [60, 40]]
