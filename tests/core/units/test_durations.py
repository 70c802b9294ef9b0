"""Lengths of time as a user writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.units.durations import duration_text, duration_us, round_us

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("0", 0),
        ("0h", 0),
        ("7us", 7),
        ("3000ns", 3),
        ("1ms", 1_000),
        ("0.5ms", 500),
        ("1.5s", 1_500_000),
        ("2m", 120_000_000),
        ("2min", 120_000_000),
        ("6H", 6 * HOUR),
        (" 7 d ", 168 * HOUR),
        ("2w", 336 * HOUR),
    ],
)
def test_a_length_of_time_is_a_number_and_a_unit(text, us):
    assert duration_us(text) == us


@pytest.mark.parametrize(
    "text", ["", "h", "5", "-1h", "1e3s", "5 parsecs", "1h30m", "0.0001ms", "1ns", "9999999w", "٣h"]
)
def test_what_is_no_length_of_time_is_refused_by_name(text):
    with pytest.raises(UsageError) as refused:
        duration_us(text)
    assert text in str(refused.value)


@given(st.integers(0, 10**17))
def test_a_length_of_time_reads_back_as_it_was_written(us):
    assert duration_us(duration_text(us)) == us


@given(st.integers(0, 10_000 * 366 * 24 * HOUR))
def test_a_round_length_is_the_shortest_that_is_long_enough(least):
    length = round_us(least)
    assert length >= max(least, 1)
    assert round_us(length) == length
    assert length < 10 * max(least, 1)
    assert len(duration_text(length)) <= 8
