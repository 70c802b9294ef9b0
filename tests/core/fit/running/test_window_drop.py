"""Window Drop against aggregates that are computed window by window from the rows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import OperatorKind
from adapt.core.fit.network.network import Input, Network, Node, Operator, Output, Window
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.window_drop import (
    doubts_of_batches,
    needed_for,
    tuples_kept,
    windows_at,
    windows_behind,
    windows_kept,
)
from tests.core.fit.running.literal_window_drop import WindowDrop
from tests.core.random_drop import random_drop

windows = st.tuples(st.integers(1, 12), st.integers(1, 12)).map(
    lambda sides: Window(max(sides), min(sides), timed=True)
)


def aggregated(rows, window, opens):
    """The sum of every window that may begin, by its number, from rows of (position, value); empty windows are none."""
    results = {}
    for position, value in rows:
        for number in range(position // window.slide + 1):
            begin = number * window.slide
            if begin <= position < begin + window.size and opens(number):
                results[number] = results.get(number, 0) + value
    return results


def all_open(_):
    return True


def results_of(rows, levels, drop=None):
    """Results of aggregates one behind the other, those of a timed window at the time where it begins."""
    for level, window in enumerate(levels):
        opens = (lambda number, level=level: bool(drop.opens(level, np.array([number]))[0])) if drop else all_open
        results = aggregated(rows, window, opens)
        rows = sorted((number * window.slide if window.timed else number, value) for number, value in results.items())
    return results


def some_rows(seed, count, timed=True):
    random = np.random.default_rng(seed)
    positions = np.sort(random.integers(0, 3 * count, count)) if timed else np.arange(count)
    return positions, random.integers(1, 1000, count)


@given(st.integers(0, 1000), windows, st.floats(0, 1), st.integers(1, 6))
def test_every_emitted_window_has_its_unshed_value(seed: int, window: Window, keep: float, batch: int) -> None:
    positions, values = some_rows(seed, 60)
    drop = WindowDrop((window,), keep, seed, 1, batch)
    kept = drop.keeps(positions)
    whole = results_of(list(zip(positions.tolist(), values.tolist(), strict=True)), [window])
    shed = results_of(list(zip(positions[kept].tolist(), values[kept].tolist(), strict=True)), [window], drop)
    assert shed == {number: whole[number] for number in whole if drop.opens(0, np.array([number]))[0]}


@settings(max_examples=60)
@given(st.integers(0, 1000), windows, windows, st.booleans(), st.floats(0, 1), st.integers(1, 4))
def test_so_it_is_behind_two_aggregates(
    seed: int, inner: Window, outer: Window, timed: bool, keep: float, batch: int
) -> None:
    levels = tuple(Window(window.size, window.slide, timed) for window in (inner, outer))
    positions, values = some_rows(seed, 60, timed)
    drop = WindowDrop(levels, keep, seed, 1, batch)
    kept = drop.keeps(positions)
    whole = results_of(list(zip(positions.tolist(), values.tolist(), strict=True)), levels)
    shed = results_of(list(zip(positions[kept].tolist(), values[kept].tolist(), strict=True)), levels, drop)
    assert shed == {number: whole[number] for number in whole if drop.opens(1, np.array([number]))[0]}


def test_random_drop_below_an_aggregate_emits_wrong_windows() -> None:
    window = Window(10, 5, timed=True)
    positions, values = some_rows(1, 200)
    kept = random_drop(1, 1, np.arange(200), 0.5)
    whole = results_of(list(zip(positions.tolist(), values.tolist(), strict=True)), [window])
    shed = results_of(list(zip(positions[kept].tolist(), values[kept].tolist(), strict=True)), [window])
    assert np.mean([shed[number] != whole[number] for number in shed]) > 0.5


def test_two_windows_that_slide_by_1_need_one_less_than_both() -> None:
    for timed in (True, False):
        assert needed_for([Window(5, 1, timed), Window(3, 1, timed)]).size == 7
    with pytest.raises(UsageError, match="mix time windows and count windows"):
        needed_for([Window(5, 1, True), Window(3, 1, False)])


@pytest.mark.parametrize(("batch", "share"), [(1, Fraction(1, 32)), (5, Fraction(3, 10)), (20, Fraction(9, 20))])
def test_half_the_windows_of_10_by_2_spare_3_30_45_percent_of_the_tuples(batch: int, share: Fraction) -> None:
    assert 1 - tuples_kept(Window(10, 2, True), batch, np.array(0.5)) == pytest.approx(float(share), rel=1e-12)


@pytest.mark.parametrize("window", [Window(10, 2, True), Window(7, 3, True), Window(4, 4, True)])
def test_the_tuples_kept_are_those_the_curve_tells(window: Window) -> None:
    positions = np.arange(200_000)
    for batch, keep in ((1, 0.8), (3, 0.4), (9, 0.2)):
        kept = WindowDrop((window,), keep, 5, 0, batch).keeps(positions).mean()
        batches = len(positions) / (batch * window.slide)
        assert kept == pytest.approx(tuples_kept(window, batch, np.array(keep)), abs=4 / np.sqrt(batches))


@given(windows, st.integers(1, 30), st.floats(0, 1))
def test_the_curve_rises_from_0_to_1_above_the_diagonal_and_is_undone(window: Window, batch: int, keep: float) -> None:
    ends = tuples_kept(window, batch, np.array([0.0, keep, 1.0]))
    assert ends[[0, 2]] == pytest.approx([0, 1], abs=1e-15)
    assert ends[1] >= keep - 1e-12
    undone = windows_kept(window, batch, ends)
    assert tuples_kept(window, batch, undone) == pytest.approx(ends, abs=1e-12)


@given(windows, st.integers(0, 100))
def test_windows_at_a_position_are_those_that_hold_it(window: Window, position: int) -> None:
    first, last = windows_at(window, np.array([position]))
    holding = [m for m in range(102) if m * window.slide <= position < m * window.slide + window.size]
    assert (first[0], last[0] + 1) == ((holding[0], holding[-1] + 1) if holding else (first[0], first[0]))


AGGREGATE = OperatorKind.AGGREGATE


def aggregate(name, source, window):
    return Operator(name, "A", AGGREGATE, (source,), 1.0, 0.1, window=window)


def network(*operators):
    read = {source for operator in operators for source in operator.inputs}
    last = [operator.name for operator in operators if operator.name not in read]
    return Wiring.from_network(
        Network((Node("A"),), (Input("in"),), operators, tuple(Output(f"out {name}", name) for name in last))
    )


def test_the_windows_behind_an_arc_are_found_through_maps_and_splits() -> None:
    minute, hour = Window(60, 10, True), Window(3600, 3600, True)
    wiring = network(
        Operator("parse", "A", OperatorKind.MAP, ("in",), 1.0),
        aggregate("minutes", "parse", minute),
        aggregate("hours", "minutes", hour),
        Operator("alarm", "A", OperatorKind.FILTER, ("parse",), 1.0, 0.1),
    )
    behind = {arc.name: windows for arc, windows in zip(wiring.arcs, windows_behind(wiring), strict=True)}
    assert behind["in -> parse"] == behind["parse -> minutes"] == (minute, hour)
    assert behind["minutes -> hours"] == (hour,)
    assert behind["parse -> alarm"] == behind["hours -> out hours"] == ()


def test_windows_that_differ_side_by_side_or_are_not_known_are_refused_by_name() -> None:
    parse = Operator("parse", "A", OperatorKind.MAP, ("in",), 1.0)
    with pytest.raises(UsageError, match="'parse' feeds parallel aggregates"):
        windows_behind(
            network(parse, aggregate("a", "parse", Window(9, 3, True)), aggregate("b", "parse", Window(9, 1, True)))
        )
    with pytest.raises(UsageError, match="'a' is an aggregate without a window"):
        windows_behind(network(parse, aggregate("a", "parse", None)))
    with pytest.raises(UsageError, match="batch of 1 or more"):
        WindowDrop((Window(9, 3, True),), 0.5, 0, 0, 0)


@pytest.mark.parametrize(
    ("slide", "timed", "ticks", "said"),
    [
        (2_000_000, True, 100, "for 3 min 20"),  # 100 windows of 2 s are longer than the trace
        (10, False, 9, "for 10"),  # 1,000 of 900 tuples
        (10, False, 150, "so chance decides how much of 2 min 30"),
        (1_000_000, True, 3000, "results later than 10 ticks do not count"),
        (100_000, True, 3000, ""),
        (10, False, 3000, ""),
    ],
)
def test_batches_that_are_few_or_longer_than_results_may_be_late_are_named(slide, timed, ticks, said) -> None:
    wiring = network(aggregate("agg", "in", Window(slide, slide, timed)))
    found = list(doubts_of_batches(wiring, 100, np.full((ticks, 1), 100.0), 1_000_000))
    assert len(found) == bool(said)
    assert said in "".join(found).replace("\u202f", " ")
