"""Counts of a window that slides over panes."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.lossy import LossyCounter
from adapt.core.counting.sliding import SlidingLossyCounter, SlidingWindow
from adapt.core.counting.timeline import MOST_PER_LENGTH, Panes
from adapt.core.errors import BadInput, UsageError
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length

EPSILON = 1 / 5

keys = st.none() | st.sampled_from(["", *"aaabcdefgh"])
counters = st.integers(2, 6)
steps = st.sampled_from([0, 0, 1, 2, 3, 7]) | st.sampled_from([40, 1000])
"""From a row to the next: many at once, some after more than a window."""


@st.composite
def batches(draw, most=160):
    """Rows of a key, the time since the row above and a weight, in batches, some of them empty."""
    rows = draw(st.lists(st.tuples(keys, steps, st.integers(0, 50)), max_size=most))
    ends = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=12)))
    return [rows[first:end] for first, end in pairwise([0, *ends, len(rows)])]


def column(rows):
    return pa.array([row[0] for row in rows], pa.string())


def assert_promises(summary, rows, of=lambda row: 1):
    """What a counter of error `EPSILON` promises of these rows, for every key."""
    true: Counter = Counter()
    for row in rows:
        true[row[0]] += of(row)
    n = true.total()
    listed = dict(zip(summary.keys.to_pylist(), zip(summary.counts, summary.errors, strict=True), strict=True))
    assert (summary.total, summary.rows) == (n, len(rows))
    assert summary.missed <= EPSILON * n * (1 + 1e-12)
    assert set(listed) <= set(true)
    for key, weight in true.items():
        count, error = listed.get(key, (0, summary.missed))
        assert weight - EPSILON * n * (1 + 1e-12) <= count <= weight <= count + error


def assert_same(one, other):
    assert one.keys.equals(other.keys)
    assert (one.counts.tolist(), one.errors.tolist()) == (other.counts.tolist(), other.errors.tolist())
    assert (one.missed, one.total, one.rows) == (other.missed, other.total, other.rows)
    assert one.distinct.smallest.tolist() == other.distinct.smallest.tolist()


def counter_over(rows, flush_rows):
    counter = LossyCounter(EPSILON, pa.string(), flush_rows=flush_rows)
    counter.update(column(rows))
    return counter.summary()


@given(batches(), st.integers(5, 60), counters, st.integers(1, 30))
def test_the_last_rows_are_held_between_w_and_a_pane_more(parts, w, x, flush_rows):
    counter = SlidingLossyCounter(
        EPSILON, pa.string(), SlidingWindow(Length(w, in_rows=True), x), flush_rows=flush_rows
    )
    seen: list[tuple] = []
    for rows in parts:
        counter.update(column(rows))
        seen += rows
        summary = counter.summary()
        assert counter.full == (len(seen) >= w)
        if counter.full:
            assert w <= summary.rows <= w + math.ceil(w / (x - 1))
        else:
            assert summary.rows == len(seen)
        held = seen[len(seen) - summary.rows :]
        assert_promises(summary, held)
        assert_same(summary, counter_over(held, flush_rows))


@given(batches(), st.integers(5, 60), counters, st.integers(1, 30))
def test_the_last_hours_are_held_between_w_and_a_pane_more(parts, w, x, flush_rows):
    counter = SlidingLossyCounter(EPSILON, pa.string(), SlidingWindow(Length(w), x), flush_rows=flush_rows)
    seen: list[tuple] = []
    times: list[int] = []
    origin = -77
    for rows in parts:
        now = times[-1] if times else origin
        gaps = np.array([0 if not times and not place else row[1] for place, row in enumerate(rows)], np.int64)
        here = now + np.cumsum(gaps)
        counter.update(column(rows), times_us=here)
        seen += rows
        times += here.tolist()
        if not times:
            assert not counter.full
            continue
        summary = counter.summary()
        first = len(seen) - summary.rows
        since = times[-1] - w  # the rows after this are the last W
        if counter.full:
            assert all(time <= since for time in times[:first])
            assert all(time > since - math.ceil(w / (x - 1)) for time in times[first:])
        else:
            assert first == 0
            assert times[-1] < origin + w
        assert_promises(summary, seen[first:])
        assert_same(summary, counter_over(seen[first:], flush_rows))


@given(batches(), st.integers(5, 60), counters)
def test_rows_may_weigh_what_they_like(parts, w, x):
    counter = SlidingLossyCounter(
        EPSILON, pa.string(), SlidingWindow(Length(w, in_rows=True), x), Weight.BYTES, flush_rows=7
    )
    seen: list[tuple] = []
    for rows in parts:
        counter.update(column(rows), np.array([row[2] for row in rows], np.int64))
        seen += rows
        summary = counter.summary()
        assert_promises(summary, seen[len(seen) - summary.rows :], of=lambda row: row[2])


@given(batches(), st.integers(5, 60), counters)
def test_the_cut_into_batches_decides_nothing(parts, w, x):
    window = SlidingWindow(Length(w, in_rows=True), x)
    in_parts, at_once = (SlidingLossyCounter(EPSILON, pa.string(), window, flush_rows=9) for _ in range(2))
    for rows in parts:
        in_parts.update(column(rows))
    at_once.update(column([row for rows in parts for row in rows]))
    assert_same(in_parts.summary(), at_once.summary())
    assert in_parts.full == at_once.full


def held_rows(counter, row):
    counter.update(pa.array([f"k{row}"]))
    return counter.summary().rows


def test_three_counters_over_ten_rows_by_hand():
    counter = SlidingLossyCounter(0.1, pa.string(), SlidingWindow(Length(10, in_rows=True)))
    # the first is in use up to 15 rows, the one begun after 5 rows then has 10
    assert [held_rows(counter, row) for row in range(22)] == [*range(1, 16), 11, 12, 13, 14, 15, 11, 12]


def test_after_a_gap_longer_than_the_window_only_new_rows_are_held():
    counter = SlidingLossyCounter(0.1, pa.string(), SlidingWindow(Length(100), 5))
    counter.update(pa.array([*"aab"]), times_us=np.array([5, 5, 50]))
    counter.update(pa.array([*"cc"]), times_us=np.array([10_000, 10_000]))
    assert counter.summary().keys.to_pylist() == ["c"]
    assert counter.summary().counts.tolist() == [2]
    assert counter.full


@pytest.mark.parametrize("number", [1, 0, -3, 26])
def test_a_number_of_counters_that_slides_no_window_is_refused(number):
    with pytest.raises(UsageError, match=rf"counters must be from 2 to 25 \(got {number}\)"):
        SlidingWindow(Length(1000), number)


def test_a_window_in_time_needs_times_that_do_not_fall():
    counter = SlidingLossyCounter(0.1, pa.string(), SlidingWindow(Length(100)))
    with pytest.raises(ValueError, match="needs the times"):
        counter.update(pa.array(["a"]))
    with pytest.raises(BadInput, match="must be in time order"):
        counter.update(pa.array(["a", "a"]), times_us=np.array([5, 4]))
    counter.update(pa.array(["a", "a"]), times_us=np.array([5, 5]))
    with pytest.raises(BadInput, match="must be in time order"):
        counter.update(pa.array(["a"]), times_us=np.array([4]))
    counter.update(pa.array(["b"]), times_us=np.array([5]))
    assert counter.summary().counts.tolist() == [2, 1]


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
