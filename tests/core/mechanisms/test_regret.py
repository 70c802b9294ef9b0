"""Regret of scenarios, against sums of the outcomes."""

import math

import numpy as np
import pytest

from adapt.core.elastic.planning.prices import Prices
from adapt.core.mechanisms.recommendation import advice_of
from adapt.core.mechanisms.regret import regret_sentence, regrets, with_optimum
from adapt.core.mechanisms.scenarios import BASELINE, Scenario
from adapt.core.mechanisms.sweep.finding import Margin
from tests.core.mechanisms.test_comparison import FRAME, outcomes, plainly

SEEDS = 4
COSTS = {
    BASELINE: (40, 44, 36, 50),
    "lag": (20, 31, 25, 30),
    "split-pkg": (10, 10, 10, 10),
    "shed": (15, 50, 15, 15),
    "optimum": (24, 30, 22, 30),
}
WHOLE = BASELINE, "lag", "optimum"


def outcome(name, cost):
    said = {"drop_rate": 0.1 if name == "shed" else 0.0, "merge_tuples": 7 if name == "split-pkg" else 0}
    bound = {"cost_bound": 15.0} if name == "optimum" else {}
    (record,) = outcomes(**{name: {"cost": float(cost), **said, **bound}}).records()
    return {**record, "scenario": name}


def runs(costs=COSTS):
    return {name: [outcome(name, cost) for cost in each] for name, each in costs.items()}


def test_the_optimum_is_the_cheapest_that_splits_no_key_and_drops_no_row():
    found = with_optimum(runs())
    least = np.min([COSTS[name] for name in WHOLE], axis=0)
    assert [row["cost"] for row in found["optimum"]] == least.tolist() == [20, 30, 22, 30]
    assert [row["cost_bound"] for row in found["optimum"]] == [15.0] * SEEDS
    assert {row["scenario"] for row in found["optimum"]} == {"optimum"}
    assert {name: each for name, each in found.items() if name != "optimum"} == {
        name: each for name, each in runs().items() if name != "optimum"
    }


def test_a_regret_is_the_mean_ratio_and_none_is_below_zero():
    found = with_optimum(runs())
    least = np.min([COSTS[name] for name in WHOLE], axis=0)
    over = regrets(found)
    assert set(over) == set(WHOLE)  # the optimum neither splits nor drops
    for name in (BASELINE, "lag"):
        ratios = np.array(COSTS[name]) / least
        assert over[name].ratio == pytest.approx(math.exp(np.log(ratios).mean()))
        assert 1 <= over[name].low <= over[name].ratio <= over[name].high
    assert over["lag"].low == 1  # by Student's t alone it would be below
    assert over["optimum"] == Margin(1.0, 1.0, 1.0)
    assert min(margin.ratio for margin in over.values()) >= 1


def test_a_scenario_with_fewer_seeds_is_compared_on_those():
    found = with_optimum(runs({**COSTS, "lag": COSTS["lag"][:1]}))
    assert [row["cost"] for row in found["optimum"]] == [20, 30, 22, 30]
    assert regrets(found)["lag"].ratio == 1


def test_without_the_optimum_there_is_no_regret():
    without = {name: each for name, each in runs().items() if name != "optimum"}
    assert regrets(with_optimum(without)) == {}
    assert regret_sentence(with_optimum(without), Prices()) == ""


def test_the_sentence_names_cost_gap_and_least_regrets():
    first = {name: [outcome(name, each[0])] for name, each in COSTS.items()}
    said = plainly(regret_sentence(with_optimum(first), Prices()))
    assert "the optimum, which knows the stream, costs 20 s (no schedule made in advance was cheaper than lag)" in said
    assert "33% more than the least in its model with free rescales; static-uniform 100% more." in said
    assert said.endswith("split-pkg and shed cost less than it, by splitting keys or dropping rows.")


def test_the_sentence_says_that_rescales_of_shared_memory_are_free():
    found = with_optimum(runs())
    found["ordered-ds2"] = [{**row, "scenario": "ordered-ds2", "queueing": "ordered"} for row in runs()["lag"]]
    assert "share memory" not in regret_sentence(found, Prices())
    found["ordered-ds2"][0]["restarts"] = 2
    assert regret_sentence(found, Prices()).endswith(" Rescales of workers that share memory are free.")


def test_the_optimum_is_never_recommended():
    behind = {"p99": 50.0, "drain": 60.0}
    records = outcomes(
        static_uniform=behind, lag={"worker_time": 500.0}, optimum={"worker_time": 1.0, "cost_bound": 1.0}
    ).records()
    known = {name: Scenario(name) for name in (BASELINE, "lag", "optimum")}
    assert advice_of(records, known, FRAME).scenario == "lag"
