"""The frontier: its points, its bounds, its knee, and what a budget picks from it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.partitioning.frontier.frontier import Frontier, Point, frontier
from adapt.core.partitioning.frontier.today import Budget
from tests.tiers import SOAK

from .cases import keeps, least_of_all, tiny_step, zipf_step

WORK = 100_000
ROUNDING = 1 + 1e-7


def point(state_moved, imbalance, pins=None, out_of_sample=None):
    number = round(100 * state_moved) if pins is None else pins
    nowhere = np.zeros(0, np.int32)
    return Point(Budget(), nowhere, number, state_moved, imbalance, 1.0, False, out_of_sample)


@settings(max_examples=100 if SOAK else 4)
@given(st.integers(0, 10_000), st.none() | st.floats(0, 1), st.none() | st.integers(0, 40))
def test_every_point_is_what_it_says_and_no_other_beats_it(seed, share, pins):
    step, _ = zipf_step(seed, 1, 100)
    limits = Budget(share, pins)
    found = frontier(step, limits, WORK)
    assert found.points[0].pins == 0
    assert found.points[0].imbalance == step.imbalance(step.home)
    assert found.knee in found.points
    for each in found.points:
        assert keeps(step, limits, each.placed)
        assert keeps(step, each.budget, each.placed)
        assert each.imbalance == step.imbalance(each.placed)
        assert each.pins == step.pins(each.placed)
        assert each.state_moved == step.moved_share(each.placed)
        assert each.bound <= each.imbalance
        assert not each.proved or each.gap <= ROUNDING
        assert not any(other.beats(each) for other in found.points)
    states = [each.state_moved for each in found.points]
    assert states == sorted(states)
    shares, bounds = zip(*found.bounds, strict=True)
    assert list(shares) == states
    assert list(bounds) == sorted(bounds, reverse=True)
    assert all(bound <= each.imbalance for bound, each in zip(bounds, found.points, strict=True))


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_equal_steps_have_equal_frontiers(seed):
    step, _ = zipf_step(seed, 30, 100)
    found, again = frontier(step, Budget(0.3, 20), WORK), frontier(step, Budget(0.3, 20), WORK)
    assert again.as_data() == found.as_data()
    assert [each.placed.tolist() for each in again.points] == [each.placed.tolist() for each in found.points]


def test_on_tiny_steps_the_end_is_the_optimum_and_every_point_is_proved():
    for seed in range(40 if SOAK else 15):
        step, limits = tiny_step(seed)
        found = frontier(step, limits, WORK)
        least = min(each.imbalance for each in found.points)
        assert least <= least_of_all(step, limits) * ROUNDING, f"seed {seed}"
        assert all(each.proved for each in found.points), f"seed {seed}"
        assert all(each.bound <= least_of_all(step, each.budget) * ROUNDING for each in found.points), f"seed {seed}"


def test_more_budget_buys_no_less_balance():
    found = frontier(zipf_step(5, 300, 300)[0])
    picked = [found.within(Budget(share)).imbalance for share in np.linspace(0, 1, 21)]
    assert picked == sorted(picked, reverse=True)
    picked = [found.within(Budget(None, pins)).imbalance for pins in range(100)]
    assert picked == sorted(picked, reverse=True)
    assert picked[0] == found.points[0].imbalance
    assert found.within(Budget()).imbalance == min(each.imbalance for each in found.points)
    assert found.within(Budget(0.0)).pins == 0


def test_points_that_others_beat_are_left_out():
    worse, same = point(0.2, 1.6, pins=9), point(0.1, 1.5, pins=1)
    found = Frontier.of_points([point(0, 2), point(0.1, 1.5, pins=1), worse, same])
    assert [each.state_moved for each in found.points] == [0, 0.1]


@pytest.mark.parametrize(
    ("points", "at"),
    [
        ([(0, 2.0)], 0),
        ([(0, 2.0), (0.1, 2.0, 1, 2.1)], 0),
        ([(0, 2.0), (0.1, 1.0)], 1),
        ([(0, 4.0), (0.1, 1.2), (0.5, 1.1), (0.9, 1.0)], 1),
        ([(0, 4.0), (0.1, 3.9), (0.5, 1.1), (0.9, 1.0)], 2),
        ([(0, 4.0, 0), (0, 1.1, 2), (0, 1.0, 40)], 1),
    ],
)
def test_the_knee_is_farthest_from_the_chord(points, at):
    found = Frontier.of_points([point(*each) for each in points])
    assert found.knee is found.points[at]


def test_what_was_measured_out_of_sample_decides():
    found = Frontier.of_points([point(0, 2.0, 0, 2.0), point(0.1, 1.5, 1, 1.6), point(0.2, 1.0, 2, 2.2)])
    assert found.knee.pins == 1
    assert found.within(Budget()).pins == 1


def test_its_table_and_json_have_the_same_numbers_with_units():
    found = frontier(zipf_step(8, 60, 60)[0], work=WORK)
    table, data = found.table(), json.loads(json.dumps(found.as_data()))
    assert data["schema"] == "adapt.frontier/2"
    assert "out_of_sample" not in [column.name for column in table.columns]
    names = [column.name for column in table.columns if column.name != "plan"]
    assert [{name: row[name] for name in names} for row in data["points"]] == [
        {name: row[name] for name in names} for row in table.records()
    ]
    assert table.values("plan").count("knee") == 1
    assert Frontier.from_data(data) == found
    assert set(data["fields"]) == set(data["points"][0])
    assert data["fields"]["state_moved"] == "state of the pinned keys / all state (share)"
