"""Amounts, lengths of time and of rows as people write them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.units.amounts import bits_of, bytes_of, micros_of, seconds_of
from adapt.core.units.durations import duration_text, duration_us, round_us
from adapt.core.units.row_or_time_span import Length


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (seconds_of, "45us", 45e-6),
        (seconds_of, "0.5us", 0.5e-6),
        (seconds_of, "0", 0.0),
        (seconds_of, "7 ns", 7e-9),
        (seconds_of, "1.5min", 90.0),
        (seconds_of, "2w", 1_209_600.0),
        (micros_of, "2.5ms", 2500.0),
        (bytes_of, "512MB", 512e6),
        (bytes_of, "1GiB", 2.0**30),
        (bits_of, "250Mbps", 250e6),
    ],
)
def test_a_number_and_a_unit_are_an_amount(read, text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        (seconds_of, "", "is not a duration"),
        (seconds_of, "-1s", "is not a duration"),
        (seconds_of, "1e3s", "is not a duration|unknown unit 'e'"),
        (seconds_of, "5", r"5 needs a unit: 5s or 5h\?"),
        (bytes_of, "5", r"5 needs a unit: 5B or 5MB\?"),
        (bits_of, "2.5", r"2.5 needs a unit: 2.5Mbps or 2.5Gbps\?"),
        (seconds_of, "5 GB", "unknown unit 'GB'"),
        (bytes_of, "5s", "unknown unit 's'"),
        (bits_of, "250 MB", "unknown unit 'MB'"),
    ],
)
def test_other_texts_are_refused(read, text, told):
    with pytest.raises(UsageError, match=told):
        read(text)


@given(st.integers(0, 10**12), st.integers(0, 10**6 - 1))
def test_an_amount_is_rounded_once(whole, rest):
    assert seconds_of(f"{whole}.{rest:06}us") == float(Fraction(f"{whole}.{rest:06}") / 10**6)


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


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("7d", Length(7 * 86_400_000_000)),
        ("500ms", Length(500_000)),
        ("1000rows", Length(1000, in_rows=True)),
        ("1000 Rows", Length(1000, in_rows=True)),
        ("1row", Length(1, in_rows=True)),
    ],
)
def test_a_length_is_a_time_or_a_number_of_rows(text, length):
    assert Length.parse(text) == length
    assert Length.parse(str(length)) == length


@given(st.builds(Length, st.integers(1, 10**17), st.booleans()))
def test_a_length_reads_back_as_it_was_written(length):
    assert Length.parse(str(length)) == length


@pytest.mark.parametrize("text", ["0", "0rows", "0h", "99999999999999999999rows", "9223372036854775808"])
def test_a_length_that_holds_nothing_or_more_than_any_trace_is_refused(text):
    with pytest.raises(UsageError, match=r"must be above 0|is not a duration"):
        Length.parse(text)


def test_a_number_without_a_unit_is_questioned():
    with pytest.raises(UsageError, match=r"^--period 6 needs a unit: 6rows or 6h\?$"):
        Length.parse("6")
