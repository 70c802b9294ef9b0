"""Lengths of stretches of a stream: times or rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.units.row_or_time_span import Length


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
