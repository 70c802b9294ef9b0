"""Races: what is clearly worse goes, the best stays, by simulations with known answers."""

import math

import numpy as np
import pytest

from adapt.core.mechanisms.race import Race, mean_outcome
from adapt.core.mechanisms.recommendation import Frame, advice_of
from adapt.core.mechanisms.scenarios import BASELINE, Scenario, Static
from adapt.core.mechanisms.sweep import Finding, Point, Sweep, over_seeds, over_seeds_table, points_table
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.input.speed import Speed
from adapt.core.statistics.intervals import Spread

FRAME = Frame(rows=10_000, channels=4, pool=8, speedup=100.0, offered=1.2, work=3.0, last_s=100.0, top_share=0.1)
KNOWN = {
    BASELINE: Scenario(BASELINE),
    "static-hybrid": Scenario("static-hybrid", Static.HYBRID),
    "split-pkg": Scenario("split-pkg", split=Splitting.PKG),
    "rebuild": Scenario("rebuild", rebuilds=True),
    "shed": Scenario("shed", sheds=True),
}
USUAL = {
    "latency_p50": 0.1,
    "latency_p95": 0.2,
    "drop_rate": 0.0,
    "worker_time": 400.0,
    "drain": 0.0,
    "merge_tuples": 0,
}
USUAL |= {"state_moved_bytes": 0, "rescales": 0, "messages": 0, "cost": 900.0}


def outcome(name, p99, **said):
    return {**USUAL, "scenario": name, "latency_p99": p99, **said}


def raced(p99s, seeds, noise=0.0, chance=None, told=None):
    """A race whose scenarios have these p99s times noise, and those of equal seeds in common."""
    chance = np.random.default_rng(0) if chance is None else chance
    common = chance.normal(0, 0.2, 100)
    race = Race(tuple(p99s), lambda rows: advice_of(rows, KNOWN, FRAME).scenario or BASELINE, FRAME.last_s, seeds)
    for asked in race.rounds():
        for name, at in asked:
            assert at == len(race.runs.get(name, ()))
            p99 = p99s[name] * math.exp(common[at] + chance.normal(0, noise))
            race.add(name, outcome(name, p99) | (told or {}).get(name, {}))
        race.drop(race.spread())
    return race


BEHIND = {BASELINE: 250.0, "static-hybrid": 240.0, "split-pkg": 50.0, "rebuild": 150.0}


def test_what_is_clearly_worse_gets_no_more_seeds():
    race = raced(BEHIND, 20, 0.05)
    assert race.alive == ["split-pkg"]
    assert set(race.dropped) == {BASELINE, "static-hybrid", "rebuild"}
    assert max(race.dropped.values()) <= 3
    assert {name: len(runs) for name, runs in race.runs.items()}["rebuild"] <= 3
    assert race.leader() == "split-pkg"
    assert len(race.runs["split-pkg"]) == len(race.runs[BASELINE]) == 20, "the margin over doing nothing is known"


def test_what_differs_by_less_than_noise_stays():
    race = raced({**BEHIND, "rebuild": 55.0}, 10, 0.3)
    assert {"split-pkg", "rebuild"} <= set(race.alive)


def test_what_helps_with_one_seed_stays_though_the_baseline_keeps_up_with_others():
    p99s = {BASELINE: [5.0, 30.0, 31.0, 29.0, 30.0, 32.0], "split-pkg": [1.0] * 6, "rebuild": [8.0] * 6}
    race = Race(tuple(p99s), lambda rows: advice_of(rows, KNOWN, FRAME).scenario or BASELINE, FRAME.last_s, 6)
    for asked in race.rounds():
        for name, at in asked:
            race.add(name, outcome(name, p99s[name][at]))
        race.drop(race.spread())
    assert race.leader() == "split-pkg"
    assert race.picks() == [BASELINE, *["split-pkg"] * 5]


def test_where_the_baseline_keeps_up_nothing_else_runs():
    race = raced(dict.fromkeys(BEHIND, 0.01), 10, 0.1)
    assert set(race.runs) == {BASELINE}
    assert race.is_settled
    assert race.leader() == BASELINE


def test_where_no_seed_changes_anything_three_are_enough():
    race = raced(BEHIND, 20, told={name: {"latency_p99": p99} for name, p99 in BEHIND.items()})
    assert race.alive == ["split-pkg"]
    assert {len(race.runs[name]) for name in (BASELINE, "split-pkg")} == {3}
    told = over_seeds(Finding.from_race(Point(4, 1.2), FRAME, race, KNOWN))
    assert "No seed changes anything: 3 give split-pkg the same latency and cost." in told


def test_the_best_is_dropped_at_most_as_often_as_stated():
    """The best by the mean is split-pkg; rebuild is worse by just more than what matters."""
    chance = np.random.default_rng(7)
    lost = sum("split-pkg" in raced({**BEHIND, "rebuild": 65.0}, 10, 0.6, chance).dropped for _ in range(200))
    assert lost <= 0.05 * 200


def test_what_drops_rows_leaves_when_something_that_drops_none_leads():
    race = raced({**BEHIND, "shed": 0.01}, 5, 0.05, told={"shed": {"drop_rate": 0.2}})
    assert race.dropped["shed"] <= 1


@pytest.fixture
def findings():
    base = Point(4, 1.2)
    points = {
        base: BEHIND,
        Point(4, 0.5): dict.fromkeys(BEHIND, 0.01),
        Point(4, 1.5): {name: 2 * p99 for name, p99 in BEHIND.items()},
        Point(6, 1.5): {**BEHIND, "static-hybrid": 0.1},
        Point(6, 1.2): {**BEHIND, "static-hybrid": 0.1},
    }
    return [Finding.from_race(point, FRAME, raced(p99s, 10, 0.02), KNOWN) for point, p99s in points.items()]


def test_sentences_say_how_often_it_wins_and_name_nothing_within_the_noise_of_seeds(findings):
    assert over_seeds(findings[0]).endswith("split-pkg wins in 10 of 10 seeds.")
    alike = {BASELINE: 250.0, "static-hybrid": 60.0, "split-pkg": 60.0, "rebuild": 60.0}
    races = (raced(alike, 10, 1.0, np.random.default_rng(seed)) for seed in range(20))
    noisy = [Finding.from_race(Point(4, 1.2), FRAME, race, KNOWN) for race in races]
    assert any(not found.is_clear for found in noisy)
    for found in noisy:
        is_said = over_seeds(found).startswith("No scenario is best beyond the noise of seeds: ")
        assert is_said == (2 * (found.wins + found.level) <= found.seeds)


def test_tables_have_a_row_for_each_point_and_for_each_scenario_that_ran(findings):
    points, over = points_table(findings).records(), over_seeds_table(findings).records()
    assert [row["wins"] for row in points] == [10] * 5
    for row in over:
        assert row["latency_p99_low"] is None or row["latency_p99_low"] <= row["latency_p99"] <= row["latency_p99_high"]
    assert {row["scenario"] for row in over if row["offered"] == 0.5} == {BASELINE}
    front = {(row["workers"], row["scenario"]) for row in over if row["offered"] == 1.5 and row["pareto"] == "yes"}
    assert front == {(6, "static-hybrid")}


def test_means_of_times_are_geometric_and_equal_values_stay():
    mean = mean_outcome([outcome("a", 1.0, merge_tuples=3), outcome("a", 4.0, merge_tuples=4)])
    assert mean["latency_p99"] == pytest.approx(2.0)
    assert mean["merge_tuples"] == 4
    assert mean["worker_time"] == 400.0
    assert mean_outcome([outcome("a", None), outcome("a", 1.0)])["latency_p99"] is None


def test_points_lie_on_a_grid_and_several_or_a_long_stream_get_fewer_seeds():
    base = Point(8, 1.2)
    assert Sweep().points(base, 0.1) == [base]
    grid = Sweep((Speed(offered=0.5), Speed(speedup=12.0)), (8, 10)).points(base, 0.1)
    assert grid[0] == base
    assert {(point.workers, round(point.offered, 9)) for point in grid} == {(8, 0.5), (8, 1.2), (10, 0.5), (10, 1.2)}
    assert (Sweep().seeds_of(1000), Sweep().seeds_of(10**7), Sweep(workers=(8, 10)).seeds_of(1000)) == (10, 3, 3)
    assert Sweep(seeds=5).seeds_of(10**7) == 5


def test_a_spread_of_groups_is_that_within_them():
    spread = Spread().with_group([1.0, 3.0]).with_spread(Spread().with_group([10.0, 12.0]))
    assert spread.variance == pytest.approx(2.0)
