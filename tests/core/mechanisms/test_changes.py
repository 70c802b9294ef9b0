"""Where a recommendation changes: intervals by simulations whose loads of change are known."""

import math

import numpy as np
import pytest

from adapt.core.keys.names import HashName
from adapt.core.mechanisms.recommendation import SLOW, Frame, advice_of
from adapt.core.mechanisms.scenarios import BASELINE, Scenario
from adapt.core.mechanisms.sweep.changes import changes, changes_table, how_sure
from adapt.core.mechanisms.sweep.finding import Finding
from adapt.core.mechanisms.sweep.grid import Point
from adapt.core.mechanisms.sweep.race import Race
from adapt.core.mechanisms.sweep.sentences import sweep_sentences
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.statistics.intervals import median_ranks

FRAME = Frame(rows=10_000, channels=4, pool=8, speedup=100.0, offered=1.2, work=3.0, last_s=100.0, top_share=0.1)
KNOWN = {BASELINE: Scenario(BASELINE), "split-pkg": Scenario("split-pkg", split=Splitting.PKG)}
USUAL = {"p50": 0.1, "p95": 0.2, "drop_rate": 0.0, "worker_time": 400.0, "drain": 0.0, "merge_tuples": 0}
USUAL |= {"moved": 0, "restarts": 0, "messages": 0}
LOADS = tuple(round(0.5 + 0.1 * at, 1) for at in range(11))


def found_at(load, falls_behind, workers=4, split_behind=math.inf):
    """A race in which static-uniform keeps up with a seed until its load, and split-pkg until another one."""
    race = Race(
        tuple(KNOWN), lambda rows: advice_of(rows, KNOWN, FRAME).scenario or BASELINE, FRAME.last_s, len(falls_behind)
    )
    for asked in race.rounds():
        for name, at in asked:
            until = falls_behind[at] if name == BASELINE else split_behind
            p99 = SLOW * FRAME.last_s * math.exp(5 * (min(load - until, 10.0) if math.isfinite(until) else -1.0))
            dear = {"worker_time": 400.0 if name == BASELINE else 500.0}
            race.add(name, USUAL | dear | {"scenario": name, "p99": p99})
    return Finding.from_race(Point(workers, load, HashName.MURMUR3), FRAME, race, KNOWN)


def swept(falls_behind, **split):
    return [found_at(load, falls_behind, **split) for load in LOADS]


def test_a_change_lies_between_the_loads_of_most_seeds():
    (change,) = changes(swept([0.85, 0.95, 1.05, 1.05, 1.05, 1.15]))
    assert (change.low, change.high) == (0.8, 1.2), "lowest and highest of six seeds"
    assert change.confidence == pytest.approx(1 - 2 / 2**6)
    assert (change.below, change.above) == ("static-uniform is enough", "use split-pkg")
    assert change.low <= change.last_below < change.first_above <= change.high


def test_with_ten_seeds_the_outermost_do_not_count():
    (change,) = changes(swept([0.55, *[1.05] * 8, 1.45]))
    assert (change.low, change.high, change.seeds) == (1.0, 1.1, 10)


def test_the_interval_has_the_median_as_often_as_stated():
    chance = np.random.default_rng(3)
    held = []
    for _ in range(60):
        (change,) = changes(swept(list(1.03 + chance.normal(0, 0.12, 6).clip(-0.5, 0.45))))
        held.append(change.low <= 1.03 <= change.high)
    assert np.mean(held) >= 0.95


def test_an_end_beyond_all_loads_is_missing():
    (change,) = changes(swept([0.3, 1.05, 1.05]))
    assert (change.low, change.high) == (None, 1.1)
    said = " ".join(sweep_sentences(swept([0.3, 1.05, 1.05])))
    assert "from 1.1 to 1.5 use split-pkg (starting below 1.1). Starts are at 75 % confidence, from 3 seeds." in said


def test_what_no_seed_changes_is_certain():
    found = swept([0.95] * 4)
    (change,) = changes(found)
    assert (change.low, change.high, change.confidence) == (0.9, 1.0, 1.0)
    said = " ".join(sweep_sentences(found))
    assert "from 1 to 1.5 use split-pkg (starting between 0.9 and 1). No seed changes that." in said


def test_more_workers_are_an_answer_of_their_own():
    seeds = [0.95, 0.94, 0.96, 0.95, 0.95, 0.97]
    found = swept(seeds, split_behind=1.25) + [found_at(load, [9.0] * 6, workers=6) for load in LOADS]
    first, second = changes(found)
    assert (first.above, second.above) == ("use split-pkg", "add 2 workers")
    assert (second.low, second.high) == (1.2, 1.3)
    said = " ".join(sweep_sentences(found))
    assert "from 1.3 to 1.5 add 2 workers (starting between 1.2 and 1.3). Starts are at 97 % confidence" in said


def test_a_load_without_clear_answer_lies_within_the_interval():
    found = swept([0.86, 0.85, 0.84, 1.14, 1.15, 1.16])
    (change,) = changes(found)
    assert (change.low, change.high) == (0.8, 1.2)
    assert changes_table(found).records()[0]["seeds"] == 6


def test_one_answer_does_not_change():
    assert changes(swept([9.0] * 3)) == []
    assert how_sure([]) == ""


@pytest.mark.parametrize(
    ("count", "rank", "confidence"), [(1, 1, 0.0), (3, 1, 0.75), (6, 1, 0.96875), (10, 2, 0.97852)]
)
def test_ranks_of_a_median_are_those_of_the_tables(count, rank, confidence):
    """Table of Nair, "Table of confidence interval for the median", Sankhya 4, 1940: 10 values, 2nd to 9th."""
    assert median_ranks(count) == (rank, pytest.approx(confidence, abs=1e-4))
