"""Lossy counting row by row, against the definition in the paper read word for word."""

import math
from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from adapt.core.stream import KeyType
from tests.core.counting.per_item import PerItemLossyCounter

windows = st.integers(2, 12)
rows = st.lists(st.none() | st.sampled_from(["", *"aaabbcdefgh"]), max_size=100)


def literal(keys, window):
    """Section 4.1.2: the entries (c_a, c_e) by key, and the number of windows that closed."""
    entries = {}
    for row, key in enumerate(keys, 1):
        i = math.ceil(row / window)
        c_a, c_e = entries.get(key, (0, i - 1))
        entries[key] = (c_a + 1, c_e)
        if row % window == 0:
            entries = {key: (c_a, c_e) for key, (c_a, c_e) in entries.items() if not c_a + c_e <= i}
    return entries, len(keys) // window


def counted(keys, epsilon, key_type=KeyType.STRING):
    counter = PerItemLossyCounter(epsilon, key_type)
    for key in keys:
        counter.add(key)
    return counter


def entries_of(summary):
    return dict(
        zip(summary.keys.to_pylist(), zip(summary.counts.tolist(), summary.errors.tolist(), strict=True), strict=True)
    )


@given(rows, windows)
def test_entries_are_those_of_the_paper_after_every_row(keys, window):
    counter = PerItemLossyCounter(1 / window)
    for row, key in enumerate(keys, 1):
        counter.add(key)
        entries, _ = literal(keys[:row], window)
        assert counter.entries == len(entries)
    entries, closed = literal(keys, window)
    summary = counter.summary()
    assert entries_of(summary) == entries
    assert (summary.missed, summary.total, summary.rows) == (closed, len(keys), len(keys))


@given(rows, st.floats(0.02, 0.98))
def test_a_window_is_the_least_whole_number_not_below_1_over_epsilon(keys, epsilon):
    wanted = 1 / Fraction(epsilon)
    assume(abs(wanted - round(wanted)) > 1e-12)  # a third, as a float, is a little less than a third
    assert entries_of(counted(keys, epsilon).summary()) == literal(keys, math.ceil(wanted))[0]


def test_two_windows_by_hand():
    # ceil(1 / 0.3) = 4 rows a window. The first closes with i = 1 and lets b go, which was there once;
    # b comes back in the second with c_e = 1, twice, and outlives its end: 2 + 1 > 2. c does not: 1 + 1 <= 2.
    counter = counted([*"aaab", *"bbac"], 0.3)
    assert entries_of(counter.summary()) == {"a": (4, 0), "b": (2, 1)}
    assert counter.summary().missed == 2
