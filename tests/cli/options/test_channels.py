"""Channel counts as users type them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.cli.options.channels import channel_counts
from adapt.core.errors import UsageError

counts = st.integers(1, 40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8", [8]), ("1:4", [1, 2, 3, 4]), ("4:2", [4, 3, 2]), ("1,2,4,8", [1, 2, 4, 8]), ("1:3,8:7", [1, 2, 3, 8, 7])],
)
def test_channel_counts_are_a_count_a_range_or_a_list(text, expected):
    assert channel_counts(text) == expected


@given(counts, counts)
def test_a_range_has_both_ends_and_steps_of_one(first, last):
    chain = channel_counts(f"{first}:{last}")
    assert (chain[0], chain[-1]) == (first, last)
    assert all(abs(after - before) == 1 for before, after in pairwise(chain))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1:",
        "1,,2",
        "0",
        "1:0",
        "1000001",
        "1:9999999999999",
        "1:9000,1:9000",
        "9" * 5000,
    ],
)
def test_other_channel_counts_are_refused(text):
    with pytest.raises(UsageError):
        channel_counts(text)
