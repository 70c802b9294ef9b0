"""Panes, against cutting position by position with fractions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.timeline import MOST_PER_LENGTH, Panes
from adapt.core.errors import UsageError
from adapt.core.units.row_or_time_span import Length


@st.composite
def grids(draw, most=200):
    per_length = draw(st.integers(1, MOST_PER_LENGTH))
    return Panes(Length(draw(st.integers(per_length, most)), in_rows=draw(st.booleans())), per_length)


def exact_start(grid, number):
    return Fraction(number * grid.length.size, grid.per_length).__floor__()


@given(grids())
def test_every_position_is_in_the_last_pane_that_has_begun(grid):
    numbers = grid.numbers(np.arange(3 * grid.length.size)).tolist()
    starts = [exact_start(grid, number) for number in range(3 * grid.per_length + 1)]
    assert numbers == [
        max(number for number, start in enumerate(starts) if start <= at) for at in range(3 * grid.length.size)
    ]


@given(grids(), st.integers(0, 10**9))
def test_panes_differ_by_one_position_at_most_and_none_is_empty(grid, first):
    starts = [grid.start(number) for number in range(first, first + 30)]
    widths = {after - before for before, after in pairwise(starts)}
    assert min(widths) >= 1
    assert max(widths) - min(widths) <= 1
    assert grid.numbers(np.array(starts)).tolist() == list(range(first, first + 30))


@given(grids(10**15), st.integers(0, 10_000 * 366 * 86_400_000_000))
def test_the_longest_of_traces_in_microseconds_is_cut_without_overflow(grid, position):
    number = int(grid.numbers(np.array([position]))[0])
    assert exact_start(grid, number) <= position < exact_start(grid, number + 1)


@pytest.mark.parametrize("per_length", [0, -1, MOST_PER_LENGTH + 1])
def test_a_number_of_panes_out_of_range_is_refused(per_length):
    with pytest.raises(UsageError, match=rf"must have 1 to 24 panes \(got {per_length}\)"):
        Panes(Length(1000), per_length)


def test_a_length_with_an_empty_pane_is_refused():
    assert Panes(Length(3, in_rows=True), 3).start(1) == 1
    with pytest.raises(UsageError, match="a length of 2rows is too short for 3 panes"):
        Panes(Length(2, in_rows=True), 3)
