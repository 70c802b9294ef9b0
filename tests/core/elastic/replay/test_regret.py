"""Cost and regret: summed from the tables, and zero for the optimum."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.elastic.planning.known_load import KnownLoad
from adapt.core.elastic.planning.moves import known_moves
from adapt.core.elastic.planning.prices import GIB, Prices
from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.restart import Restart
from adapt.core.stage.conditions.settings import Network
from adapt.core.stage.control.workers import Migration
from adapt.core.stage.engine.series import Latencies
from tests.core.elastic.replay.test_replay import ALL, ELASTIC, STAGE, burst, replayed

EVERY = (*ALL, ScalingPolicy.PLAN_AHEAD, ScalingPolicy.OPTIMUM)
PRICES = Prices(0.2, 10.0, 2.0, 50.0, 0.5)


@pytest.fixture(scope="module")
def run():
    return replayed(replace(ELASTIC, policies=EVERY, prices=PRICES))


def test_a_cost_is_summed_from_the_tables(run):
    cases = run.tables()["cases"].records()
    assert [row["case"] for row in cases] == ["fixed", "thresholds", "ds2", "lag", "plan-ahead", "optimum"]
    row_s = 1e-3 + STAGE.costs.produce_s
    for row in cases:
        pauses = row["pauses"] / STAGE.partitions
        further = 10 * row_s * row["late"] + 2 * pauses + 50 * row["moved"] / GIB + 0.5 * row["restarts"]
        assert row["cost"] == pytest.approx(row["worker_seconds"] + further)
        assert row["regret"] == pytest.approx(row["cost"] / cases[-1]["cost"] - 1)
    assert cases[0]["late"] > cases[-1]["late"]
    assert cases[0]["regret"] > 0.5
    assert run.bound_s <= cases[-1]["cost"]


def test_the_verdict_says_what_regret_is(run):
    verdict = run.summary().records()[0]["verdict"]
    assert "10 times the work of each row above 200" in verdict
    assert "the optimum, which knows the stream, costs" in verdict
    assert "optimum" not in replayed().summary().records()[0]["verdict"]
    assert all(row["regret"] is None for row in replayed().tables()["cases"].records())


def test_the_optimum_is_the_cheapest_of_all_cases():
    """All rows are of one partition: further workers, which the optimum's model counts on, cannot help."""
    chunk = burst()
    hot = Chunk(np.zeros_like(chunk.groups), chunk.producers, chunk.due_s, None)
    run = replayed(replace(ELASTIC, policies=(ScalingPolicy.OPTIMUM, *ALL), prices=PRICES), chunk=hot)
    costs = {one.case: run.bill.cost(one).total_s for one in run.outcomes}
    assert list(costs) == ["fixed", "thresholds", "ds2", "lag", "optimum"]
    assert costs["optimum"] == min(costs.values()) == costs["fixed"]
    assert "no schedule made in advance was cheaper than fixed)" in run.summary().records()[0]["verdict"]
    assert [row["case"] for row in run.tables()["intervals"].records()].count("optimum") > 0


def test_no_regret_is_negative(run):
    assert min(run.bill.regrets(run.outcomes)) == 0


def test_late_rows_are_those_above_a_bin_of_the_histogram():
    latencies = Latencies(0, np.zeros(0, np.int64), 0.0, 0.0)
    assert latencies.above(1.0) == 0
    first = Latencies(832, np.array([5, 7], np.int64), 1.0, 1.0)  # from 0.5 s on, by 1/64 s
    assert (first.above(0.4), first.above(0.51), first.above(0.6)) == (12, 7, 0)


def test_a_known_load_is_that_of_the_stream():
    chunk = burst(2e-3)
    load = KnownLoad.from_chunks([chunk], STAGE, 4.0, 0.1)
    due = np.bincount((chunk.due_s / load.window_s).astype(int), minlength=len(load.work))
    assert load.work == pytest.approx(due * (2e-3 + STAGE.costs.produce_s))
    cut = KnownLoad.from_chunks([chunk], STAGE, 1.0, 0.1)
    assert cut.work[:10] == pytest.approx(load.work[:10])
    assert len(cut.work) == 11


def test_moves_cost_what_the_settings_say():
    counts, network = np.array([1.0, 2.0, 4.0]), Network(flow_bits_per_s=8e6, state_bits_per_s=8e6)
    whole = Migration(Migrating.RESTART, restart=Restart(start_s=3.0, saves=False))
    stop, delay, moved = known_moves(counts, whole, network, 2e6, 1.0, 8)
    assert stop[0, 1] == pytest.approx(3 + 2)  # restores all of 2 MB at 1 MB/s
    assert delay[0, 1] - stop[0, 1] == 1.0
    assert delay[1, 0] == stop[1, 0]
    assert moved[0, 2] == pytest.approx(1.5e6)
    stop, delay, _ = known_moves(counts, Migration(), network, 2e6, 0.0, 8)
    assert (delay[1, 2], stop[1, 2]) == (pytest.approx(1.0), pytest.approx(0.5))
    stop, _, _ = known_moves(counts, Migration(Migrating.ONE), network, 2e6, 0.0, 8)
    assert stop[1, 2] == pytest.approx(1 / 8)


@pytest.mark.parametrize("given", [{"target_s": 0.0}, {"late": -1.0}, {"moved": np.inf}, {"rescale": -1.0}])
def test_prices_that_cannot_be_are_refused(given):
    with pytest.raises(UsageError, match="must be"):
        Prices(**given)
