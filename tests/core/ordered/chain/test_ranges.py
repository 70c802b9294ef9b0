"""Partitions by range."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.ordered.chain.columns import range_partitions


def test_whole_numbers_are_cut_into_ranges_of_one_width() -> None:
    assert range_partitions(pa.array([10, 0, 11, 5, None, 4]), 3).tolist() == [2, 0, 2, 1, 0, 1]


def test_strings_are_cut_into_ranges_of_as_many_keys() -> None:
    assert range_partitions(pa.array(["d", "a", None, "c", "b"]), 2).tolist() == [1, 0, 0, 1, 0]


def test_the_ends_of_the_range_of_words_are_partitions_apart() -> None:
    assert range_partitions(pa.array([-(2**63), 2**63 - 1, 0, -1]), 2).tolist() == [0, 1, 1, 0]


@given(
    st.one_of(
        st.sets(st.integers(-(2**63), 2**63 - 1)).map(lambda keys: pa.array(sorted(keys), pa.int64())),
        st.sets(st.text(max_size=3)).map(lambda keys: pa.array(sorted(keys, key=str.encode), pa.string())),
    ),
    st.integers(1, 1000),
)
def test_greater_keys_never_lie_in_lower_partitions(keys: pa.Array, partitions: int) -> None:
    of = range_partitions(keys, partitions).tolist()
    assert of == sorted(of)
    assert all(0 <= partition < partitions for partition in of)
