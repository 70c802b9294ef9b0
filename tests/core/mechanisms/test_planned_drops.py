"""Rows that FIT planners drop before a stage, against shares computed here channel by channel."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.fit.network.names import DropPlanner
from adapt.core.mechanisms.cost_model import Wanted
from adapt.core.mechanisms.outcome import OUTCOME_COLUMNS, outcome_of_scenario, outcome_row
from adapt.core.mechanisms.scenario import Stream, simulated, staged
from adapt.core.mechanisms.scenarios import BASELINE, SCENARIOS, Scenario
from adapt.core.stage.conditions.settings import Costs
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.stage.input.speed import Speed
from tests.core.mechanisms.test_sustainable import keys_for_channels

CHANNELS, SERVICE_S, HEADROOM = 4, 1e-3, 0.05
ROWS = 40_000
KEYS = keys_for_channels(np.array([0.55, 0.25, 0.15, 0.05]), ROWS)
CHANNEL = {key: at for at, key in enumerate(dict.fromkeys(KEYS))}
# Each tenth has a rate of its own, in rows/s.
GAPS = np.repeat(1 / np.array([800, 2400, 1500, 600, 3000, 1000, 2000, 2800, 700, 1200]), ROWS // 10)
AT_S = np.cumsum(GAPS) - GAPS[0]
BATCH = pa.record_batch({"ts": pa.array((AT_S * 1e6).astype(np.int64)), "key": pa.array(KEYS)})


def rows(reading):
    return reading.rows(lambda: iter([BATCH]))


STREAM = Stream(rows, lambda: pytest.fail("nothing is counted"), lambda _: None)
WANTED = Wanted(CHANNELS, costs=Costs(SERVICE_S, 0.0, 0.0), state=10, speed=Speed(speedup=1.0))


@cache
def terms():
    of_stream = Demand.from_chunks(rows(Reading(MiniPartitions(CHANNELS, 64))).chunks(), WANTED.uniform)
    return replace(WANTED.terms(of_stream), period_s=0.5)


def outcome(name):
    """The outcome of a built-in scenario, and its stage."""
    scenario = next(one for one in SCENARIOS if one.name == name)
    stage = staged(scenario, terms(), STREAM)
    done = simulated(scenario, terms(), stage, None)
    row = outcome_row(outcome_of_scenario(scenario, stage, done), bounds_of(stage.demand, stage.settings), stage)
    return dict(zip((column.name for column in OUTCOME_COLUMNS), row, strict=True)), stage


@pytest.mark.parametrize("name", ["shed-exact", "shed-c-fit", "shed-d-fit"])
def test_each_channel_keeps_what_it_can_do_at_the_rate_of_the_tick_before(name: str) -> None:
    found, stage = outcome(name)
    ticks = int(AT_S[-1] / 0.5) + 1
    channel, tick = np.array([CHANNEL[key] for key in KEYS]), np.minimum((AT_S / 0.5).astype(int), ticks - 1)
    rates = np.zeros((ticks, CHANNELS))
    np.add.at(rates, (tick, channel), 1 / 0.5)
    before = np.vstack([np.zeros(CHANNELS), rates[:-1]])
    with np.errstate(divide="ignore"):
        expected = np.minimum(1.0, (1 - HEADROOM) / (before * SERVICE_S))[tick, channel]
    spread = 5 * np.sqrt((expected * (1 - expected)).sum())
    slack = 0.01  # shares rise only by more than that
    least = (1.0 if name == "shed-exact" else 0.95) - slack  # tables may lose epsilon
    assert least * expected.sum() - spread < stage.rows_read < expected.sum() + spread
    assert found["processed"] == stage.rows_read == ROWS - stage.dropped
    assert found["drop_rate"] == pytest.approx(stage.dropped / ROWS)
    assert (found["messages"] > 0) == (name != "shed-d-fit"), "workers that share no tuples need none of each other"
    assert (found["message_bytes"] > 0) == (found["messages"] > 0)


def test_drops_keep_the_delay_low_and_are_the_same_in_every_run() -> None:
    (uniform, _), (planned, stage), (again, _) = map(outcome, (BASELINE, "shed-exact", "shed-exact"))
    assert planned["latency_p99"] < uniform["latency_p99"] / 2
    assert planned == again
    assert 0.05 < stage.drop_rate < 0.5
    assert uniform["messages"] == uniform["message_bytes"] == 0


def test_a_stream_that_fits_loses_nothing_by_any_planner() -> None:
    for planner in DropPlanner:
        if planner is not DropPlanner.NONE:
            assert staged(Scenario("one", drops=planner), terms().at(0.1), STREAM).dropped == 0
