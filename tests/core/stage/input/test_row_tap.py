"""Rows that producers took: in order of arrival, then number."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.stage.input.row_costs import _by_arrival
from adapt.core.stage.records.world import ROW

NUMBERS = st.integers(-5, 20) | st.integers(-(10**9), 10**9)


@given(st.lists(st.tuples(st.sampled_from((-np.inf, 0.0, 0.5, 2.0)), NUMBERS), max_size=20), st.booleans())
def test_rows_are_sorted_by_arrival_then_number(rows, in_order):
    """With numbers in the order of arrival, as streams have, and with any."""
    taken = np.zeros(len(rows), ROW)
    taken["due"], taken["number"] = [due for due, _ in rows], [number for _, number in rows]
    if in_order:
        taken["due"] = np.sort(taken["due"])
        taken["number"] = np.arange(len(rows))
        taken = np.random.default_rng(0).permutation(taken)
    order = _by_arrival(taken)
    plain = sorted(range(len(rows)), key=lambda at: (taken["due"][at], taken["number"][at]))
    assert order.tolist() == plain
