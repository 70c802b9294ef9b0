"""Policies of other systems in a replay: their restarts, their times, and oscillation in the verdict."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.registry import PUBLISHED, Chosen, ChosenScalingPolicy
from adapt.core.elastic.replay.outcome import ElasticOutcome
from adapt.core.elastic.replay.tables import OSCILLATES, _oscillation
from adapt.core.stage.control.elasticity import Step
from adapt.core.values import duration
from tests.core.elastic.replay.test_replay import ELASTIC, replayed

OWN = replace(ELASTIC, patience=None, migration=None)
CHOSEN = Chosen(lag_rows=100, times=0.01)


@pytest.fixture(scope="module")
def published():
    return replayed(replace(OWN, policies=tuple(ChosenScalingPolicy(each, CHOSEN) for each in PUBLISHED)))


def test_each_pays_what_its_engine_restarts(published):
    rows = {row["case"]: row for row in published.tables()["cases"].records()}
    assert list(rows) == ["fixed", "ds2", "lag", "flink", "spark"]
    assert all(row["processed"] == 4400 for row in rows.values())
    assert {name: row["migration"] for name, row in rows.items()} == {
        "fixed": "all",
        "ds2": "flink-savepoint",
        "lag": "kafka-eager",
        "flink": "flink-savepoint",
        "spark": "all",
    }
    for name, own in PUBLISHED.items():
        assert rows[name]["rescales"] == 0 or (rows[name]["downtime"] > 0) == (own.restart is not None)
    assert all(rows[name]["rescales"] for name in ("ds2", "lag", "spark"))
    # 1 % of 120 s and of 3 s, besides the time to work off what is on its way and to move state
    assert 0.03 * rows["lag"]["rescales"] < rows["lag"]["downtime"] < 1.2 < rows["ds2"]["downtime"]
    assert "stopped for " in published.conclusion()


def test_a_run_shorter_than_a_metrics_window_says_so():
    run = replayed(replace(OWN, policies=(ChosenScalingPolicy(ScalingPolicy.FLINK, Chosen()),)))
    assert run.outcomes[1].restarts == 0
    assert "flink never rescales" in run.conclusion()
    assert f"Flink decides first after {duration(1200)}, the run takes " in " ".join(run.notes())


def outcome(*sizes):
    """The outcome of rescales at times, to numbers of workers, from 2 on."""
    numbers = [2, *(workers for _, workers in sizes)]
    steps = [Step(at_s, before, after, 0) for (at_s, after), before in zip(sizes, numbers, strict=False)]
    done = SimpleNamespace(case="lag", simulated=SimpleNamespace(steps=steps))
    return ElasticOutcome(done, (), 0.0, 0.0, 0.0, None, (0.0, "all"))


def test_a_rescale_that_takes_back_the_one_before_is_a_reversal():
    assert outcome((10, 4), (20, 6), (30, 9)).reversals == []
    assert outcome((10, 4), (20, 2), (30, 3), (30.5, 3), (40, 5)).reversals == [(10, 20), (20, 30)]
    assert outcome((10, 4), (610, 2)).reversals == [(10, 610)]
    assert outcome((10, 4), (610.5, 2)).reversals == []


def test_oscillation_is_a_sentence():
    back_and_forth = [(10.0 + 10 * index, 4 - 2 * (index % 2)) for index in range(14)]
    assert len(outcome(*back_and_forth).reversals) == 13
    assert _oscillation(outcome(*back_and_forth)) == f"Lag takes rescales back 13 times in {duration(130)}."
    assert _oscillation(outcome(*back_and_forth[:OSCILLATES])) == ""
