"""Frequencies over time: windows put together from panes, and life-lines against looking at every pane."""

from collections import Counter
from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.lossy import LossyCounter
from adapt.core.counting.sliding import SlidingLossyCounter, SlidingWindow
from adapt.core.counting.timeline import LifeLine, Pane, Panes, Timeline, life_lines_table
from adapt.core.units.row_or_time_span import Length

ORIGIN_US = 1_000_000_000

keys = st.none() | st.sampled_from(["", *"aaabcdef"])
steps = st.sampled_from([0, 0, 1, 2, 3]) | st.sampled_from([20, 90])
streams = st.lists(st.tuples(keys, steps), min_size=1, max_size=120).map(
    lambda rows: list(
        zip([key for key, _ in rows], np.cumsum([0, *(step for _, step in rows[1:])]).tolist(), strict=True)
    )
)
"""Rows of a key and its time since the first."""


def timeline(rows, grid, epsilon, flush_rows=1):
    """The panes of some rows, each counted by itself."""
    positions = np.arange(len(rows)) if grid.length.in_rows else np.array([time for _, time in rows])
    panes = []
    for number, placed in groupby(zip(grid.numbers(positions).tolist(), rows, strict=True), key=lambda row: row[0]):
        held = [row for _, row in placed]
        counter = LossyCounter(epsilon, pa.string(), flush_rows=flush_rows)
        counter.update(pa.array([key for key, _ in held], pa.string()))
        panes.append(Pane(number, ORIGIN_US + held[0][1], ORIGIN_US + held[-1][1], counter.summary()))
    return Timeline(grid, ORIGIN_US, tuple(panes), epsilon)


def by_pane(rows, grid):
    """What each key weighs in each pane, from the first to the last."""
    positions = range(len(rows)) if grid.length.in_rows else [time for _, time in rows]
    numbers = grid.numbers(np.array(positions)).tolist()
    true = [Counter() for _ in range(numbers[-1] + 1)]
    for number, (key, _) in zip(numbers, rows, strict=True):
        true[number][key] += 1
    return true


@given(streams, st.integers(5, 40), st.integers(2, 6), st.booleans())
def test_windows_of_panes_hold_the_rows_of_the_sliding_counter(rows, size, counters, in_rows):
    window = SlidingWindow(Length(size, in_rows), counters)
    epsilon = 1 / 5
    told = timeline(rows, window.panes, epsilon)
    sliding = SlidingLossyCounter(epsilon, pa.string(), window, flush_rows=1)
    true = by_pane(rows, window.panes)
    seen = 0
    for pane, counted in told.windows(counters):
        batch = rows[seen : seen + pane.summary.rows]
        seen += len(batch)
        sliding.update(
            pa.array([key for key, _ in batch], pa.string()), times_us=np.array([time for _, time in batch], np.int64)
        )
        assert counted.rows == counted.total == sliding.summary().rows
        held = sum(true[max(pane.number - counters + 1, 0) : pane.number + 1], Counter())
        assert counted.total == held.total()
        low, high = counted.intervals(pa.array(list(held), pa.string()))
        for weight, least, most in zip(held.values(), low, high, strict=True):
            assert weight - epsilon * held.total() - 1e-9 <= least <= weight <= most
    assert seen == len(rows)
    assert told.last_window(counters).count_low.tolist() == counted.count_low.tolist()
    assert told.whole().rows == len(rows)


grids = st.builds(
    lambda size, per_length, in_rows: Panes(Length(size * per_length, in_rows), per_length),
    st.integers(1, 12),
    st.integers(1, 3),
    st.booleans(),
)


@given(streams, grids, st.sampled_from([0.05, 0.1, 0.25, 0.5, 1.0]), st.integers(1, 9))
def test_life_lines_are_those_of_looking_at_every_pane(rows, grid, support, most):
    """With an error so small that nothing is lost."""
    told = timeline(rows, grid, 1e-3)
    true = by_pane(rows, grid)
    shares = {
        key: [pane[key] / pane.total() if pane else 0.0 for pane in true]
        for key in {key for pane in true for key in pane}
    }
    hot = {key: [share >= support for share in line] for key, line in shares.items() if max(line) >= support}
    lines = told.life_lines(support, 100)
    assert {line.key: line.hot.tolist() for line in lines} == hot
    for line in lines:
        assert line.shares.tolist() == pytest.approx(shares[line.key])
        assert line.share == pytest.approx(sum(pane[line.key] for pane in true) / len(rows))
        assert line.entered == hot[line.key].index(True)
        last = max(number for number, is_hot in enumerate(hot[line.key]) if is_hot)
        assert line.left == (last + 1 if last + 1 < len(true) else None)
    order = [(-max(pane[line.key] for pane in true), -sum(pane[line.key] for pane in true)) for line in lines]
    assert order == sorted(order)
    assert [line.key for line in told.life_lines(support, most)] == [line.key for line in lines][:most]


@given(streams, grids, st.sampled_from([0.25, 0.4, 0.7]))
def test_no_key_that_is_hot_is_left_out_by_an_error(rows, grid, support):
    epsilon = 0.2
    true = by_pane(rows, grid)
    lines = {line.key: line for line in timeline(rows, grid, epsilon).life_lines(support, 100)}
    for number, pane in enumerate(true):
        for key, weight in pane.items():
            if weight / pane.total() >= support:
                assert lines[key].hot[number]
            elif key in lines and lines[key].hot[number]:
                assert weight / pane.total() >= support - epsilon - 1e-12
    for key, line in lines.items():
        assert all(
            share <= (pane[key] / pane.total() if pane else 0) for share, pane in zip(line.shares, true, strict=True)
        )


def day(*panes):
    """A pane an hour, with the keys given."""
    hour = 3_600_000_000
    rows = [(key, number * hour) for number, keys in enumerate(panes) for key in keys]
    return timeline(rows, Panes(Length.parse("1h")), 0.01)


def test_a_table_of_life_lines_by_hand():
    told = day("aaab", "abbb", "", "bbbb")
    table = life_lines_table(told, 0.75)
    hour = 3_600_000_000
    # a: 3/4, 1/4, 0, 0; b: 1/4, 3/4, 0, 1
    assert table.values("key") == ["b", "a"]
    assert table.values("share") == [8 / 12, 4 / 12]
    assert table.values("peak_share") == [1.0, 0.75]
    assert table.values("peak") == [ORIGIN_US + 3 * hour, ORIGIN_US]
    assert table.values("entered") == [ORIGIN_US + hour, ORIGIN_US]
    assert table.values("left") == [None, ORIGIN_US + hour]
    assert table.values("hot_steps") == [2, 1]
    assert table.values("life_line") == ["▂▆ █", "█▃  "]
    assert life_lines_table(told, 0.75, most=1).values("key") == ["b"]


def line_of(*shares):
    return LifeLine("a", 0.1, np.array(shares, np.float64), np.array(shares) > 0.5)


def test_bars_are_as_high_as_the_share_of_the_peak_and_only_nothing_is_blank():
    assert line_of(0, 0.125, 0.5, 1).bars == " ▁▄█"
    assert line_of(0, 0.001, 0.4).bars == " ▁█"
    assert line_of(*[0.1] * 39, 0.8).bars == "▁" * 39 + "█"
