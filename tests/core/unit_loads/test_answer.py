"""The answer in words: one screen, the action first."""

import json

import numpy as np
import pytest

from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError
from adapt.core.unit_loads.answer import Setup, answer_from
from adapt.core.unit_loads.lag import LagOfUnits
from adapt.core.unit_loads.loads import UnitLoads


def loads_of(shares, seed=0):
    random = np.random.default_rng(seed)
    counts = random.poisson(np.asarray(shares, float)[:, None] / np.sum(shares) * np.full(12, 50_000))
    return UnitLoads(tuple(map(str, range(len(shares)))), tuple(range(12)), counts.astype(float))


HOT = loads_of([10, 10, 10, 10, 10, 45, 10, 10])


def test_a_hot_unit_on_one_screen():
    lag = LagOfUnits(np.full(8, 500.0), np.full(8, 10.0), np.full(8, 15.0))
    given = Setup(engine=Engine.KAFKA, keys=5000, workers=4, today=np.arange(8, dtype=np.int32) // 2, lag=lag)
    answer = answer_from(HOT, given)
    said = "\n".join(answer.said)
    assert said.startswith("Count the keys of unit 5, then split or pin the hot one: one key is hot")
    assert "of 10,000 placements of 5,000 equal keys, none was as uneven" in said
    assert "At most 2.6 workers are useful while unit 5 stays whole" in said
    assert "At today's rates all lag is drained in 1" in said
    assert len(repr(answer).splitlines()) <= 30
    names = [each.name for each in answer.assigned]
    assert names == ["today", "range", "round-robin", "sticky", "cooperative-sticky", "best"]
    best = answer.assigned[-1]
    assert best.imbalance == min(each.imbalance for each in answer.assigned)
    assert best.imbalance >= answer.floor - 1e-9
    assert [each.title for each in answer.displayed()] == ["Hot units", "Assignments of units to workers", "Lag"]
    assert json.loads(json.dumps(answer.as_data()))["cause"] == "hot"


def test_even_units_need_nothing():
    answer = answer_from(loads_of(np.ones(8)))
    assert answer.headline.startswith("Nothing to do (8 units)")
    assert answer.hot == ()


def test_the_same_load_everywhere_is_no_work_of_a_hash():
    answer = answer_from(UnitLoads(("a", "b"), (0, 1, 2), np.ones((2, 3))))
    assert answer.judged is None
    assert answer.said[0].startswith("Nothing to do (2 units)")
    assert answer.said[-1] == "At most 2.0 workers are useful while unit a stays whole."


def test_units_that_are_hot_in_turn_are_rebalanced():
    loads = np.array([np.roll([30.0] + [10] * 7, at) for at in range(12)]).T * 1000
    answer = answer_from(UnitLoads(tuple("abcdefgh"), tuple(range(12)), loads + np.arange(8)[:, None]))
    assert answer.said[0] == "Rebalance over time, or count keys by window: different units are hot in turn"
    assert "No unit is the busiest in half of the windows" in "\n".join(answer.said)


def test_idle_workers_are_said():
    said = "\n".join(answer_from(HOT, Setup(workers=10)).said)
    assert "2 workers can have no unit" in said


def test_flink_has_ranges_only():
    answer = answer_from(HOT, Setup(engine=Engine.FLINK, workers=3))
    assert [each.name for each in answer.assigned] == ["flink", "best"]


def test_lag_that_never_drains():
    lag = LagOfUnits(np.full(8, 1e6), np.full(8, 10.0), np.full(8, 9.0))
    said = "\n".join(answer_from(HOT, Setup(lag=lag)).said)
    assert "the lag of 0, 1, 2 and 5 more never drains" in said
    assert "more workers do not help" in said


def test_what_is_refused():
    for given in (
        {"keys": 0},
        {"workers": 0},
        {"today": np.zeros(3, np.int32)},
        {"today": np.full(8, 9, np.int32), "workers": 4},
        {"drain_within_s": 0.0},
    ):
        with pytest.raises(UsageError):
            answer_from(HOT, Setup(**given))
