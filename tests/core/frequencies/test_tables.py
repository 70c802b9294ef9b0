"""Counted keys as tables: all of them, or said to be cut."""

import pyarrow as pa

from adapt.core.frequencies.exact import count_keys, frequencies_of
from adapt.core.frequencies.tables import heaviest_table


def test_every_key_is_listed_or_the_rest_is_counted():
    frequencies = frequencies_of(count_keys(pa.array([f"k{at}" for at in range(50)])))
    whole = heaviest_table(frequencies)
    assert (len(whole.rows), whole.note) == (50, "")
    cut = heaviest_table(frequencies, 20)
    assert (cut.rows, cut.note) == (whole.rows[:20], "and 30 lighter keys")
