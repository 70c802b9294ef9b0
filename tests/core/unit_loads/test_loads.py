"""Loads of units from rows, hot units, and what equal keys give each unit."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import placement_of
from adapt.core.errors import BadInput
from adapt.core.unit_loads.loads import UnitLoads, fair_shares, few_windows, hot_units, takes_turns


def over(*windows):
    """Loads of four units, by window."""
    loads = np.array(windows, float).T
    return UnitLoads(tuple("abcd"), tuple(range(len(windows))), loads)


STEADY, CALM, OTHER = (5, 1, 1, 1), (2, 2, 2, 2), (1, 5, 1, 1)


def test_rows_become_windows_and_units_in_the_order_of_their_numbers():
    loads = UnitLoads.from_rows([20, 10, 10, 10], ["s-10", "s-2", "s-10", "s-2"], [4, 1, 2, 0.5])
    assert loads.units == ("s-2", "s-10")
    assert loads.starts_us == (10, 20)
    assert loads.loads.tolist() == [[1.5, 0], [2, 4]]
    assert loads.shares.tolist() == [0.2, 0.8]
    assert (loads.busiest, loads.imbalance) == (1, 1.6)


@pytest.mark.parametrize(
    ("windows", "pattern", "since"),
    [
        ([STEADY] * 10, "steady", 0),
        ([CALM] * 6 + [STEADY] * 4, "since then", 6),
        ([STEADY] * 4 + [CALM] * 6, "at times", None),
        ([STEADY, CALM] * 5, "at times", None),
    ],
)
def test_a_hot_unit_is_hot_since_a_window_or_at_times(windows, pattern, since):
    (hot,) = hot_units(over(*windows), 1.2)
    assert (hot.unit, hot.peak) == ("a", 2.5)
    assert (hot.pattern, hot.since_us) == (pattern, since)
    assert hot.over_mean == pytest.approx(sum(each[0] for each in windows) * 4 / sum(map(sum, windows)))
    assert not takes_turns(over(*windows), 1.2)


def test_units_that_are_hot_in_turn():
    loads = over(*[tuple(np.roll(STEADY, at)) for at in range(12)])
    assert takes_turns(loads, 1.2)
    assert len(hot_units(loads, 1.2)) == 4


def test_many_windows_are_merged_with_all_their_load():
    loads = np.random.default_rng(0).random((4, 50))
    loads[:, 7] = 0
    merged = few_windows(loads)
    assert merged.shape == (4, 12)
    assert merged.sum(axis=0) == pytest.approx(np.ones(12))


@pytest.mark.parametrize("engine", [Engine.FLINK, Engine.KAFKA, Engine.kinesis_over((0, 2**126, 2**127))])
def test_equal_keys_are_spread_as_the_engine_does(engine):
    """Against the engine's own placement of many keys."""
    units = len(engine.shards) or 12
    placed = placement_of(engine, units).channels_of(pa.array([f"key-{at}" for at in range(200_000)]))
    assert np.bincount(placed, minlength=units) / 200_000 == pytest.approx(fair_shares(units, engine), abs=0.004)


def test_what_is_refused():
    for loads, match in (
        ([[1, 2]], "at least 2 units"),
        ([[1, -1], [1, 1]], r"got -1.0 for unit a in window 1"),
        ([[1, np.nan], [1, 1]], "got nan"),
        ([[0, 0], [0, 0]], "nothing to balance"),
        ([[1], [1]], "a column for each"),
    ):
        with pytest.raises(BadInput, match=match):
            UnitLoads(tuple("ab")[: len(loads)], (0, 1), np.array(loads, float))
    with pytest.raises(BadInput, match="three values"):
        UnitLoads.from_rows([1], ["a", "b"], [1, 2])
