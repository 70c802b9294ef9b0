from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.units.amounts import bits_of, bytes_of, micros_of, seconds_of


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
