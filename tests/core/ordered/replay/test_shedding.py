"""Rows dropped before they enter, against the closed form and the plain draws."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.fit.network.names import DropPlanner
from adapt.core.mechanisms.ordered.chain_drops import kept_shares
from adapt.core.ordered.engine.serial import run_serially
from adapt.core.ordered.replay.shedding import Shedding
from tests.core.ordered.chains import bound, counting, stateful, stateless

ROWS, HEADROOM = 20_000, 0.05


def shed(chain, rate, workers, costs_us, selectivities=None, planner=DropPlanner.EXACT, seed=1):
    times = (np.arange(len(chain.tuples)) * 1e9 / rate).astype(np.int64)
    shedding = Shedding(planner.value, lambda work: kept_shares(planner, work))
    given = costs_us, selectivities or [1.0] * len(costs_us)
    return shedding.shed(chain, times, given, workers, seed)


@pytest.mark.parametrize("planner", [DropPlanner.EXACT, DropPlanner.LP, DropPlanner.GREEDY_LOCAL])
@pytest.mark.parametrize(("rate", "workers"), [(150e3, 1), (1e6, 3), (250e3, 2)])
def test_one_operator_keeps_its_capacity_over_the_rate(planner, rate, workers):
    found = shed(bound([stateless("a")], ROWS), rate, workers, [10.0], planner=planner)
    closed = min(1.0, (1 - HEADROOM) * workers / (rate * 10e-6))
    assert found.keeps[0] == 1.0  # nothing is known yet
    assert found.keeps[2:-1] == pytest.approx(closed, rel=0.01)
    assert found.least == pytest.approx(1 - workers / (rate * 10e-6), abs=0.01)


def test_later_operators_count_with_the_rows_that_reach_them():
    chain = bound([stateless("a", selectivity=0.5), stateless("b")], ROWS)
    found = shed(chain, 200e3, 1, [4.0, 6.0], [0.5, 1.0])
    assert found.keeps[5] == pytest.approx((1 - HEADROOM) / (200e3 * 7e-6), rel=0.01)


def test_a_stateful_operator_is_one_workers_work():
    found = shed(bound([stateless("a"), stateful("b")], ROWS), 200e3, 8, [10.0, 10.0])
    assert found.work.capacity == pytest.approx(2.0)


def test_blocks_of_rows_are_kept_as_all_rows_are(monkeypatch):
    chain = replace(bound([stateless("a"), counting("b")], 1000), punctuations=np.array([0, 63, 64, 500, 999]))
    found = shed(chain, 300e3, 2, [5.0, 4.0])
    whole = found.rest(chain)
    assert whole.tuples[whole.punctuations].tolist() == chain.tuples[chain.punctuations].tolist()
    monkeypatch.setattr("adapt.core.ordered.replay.shedding._AT_ONCE", 64)
    again = shed(chain, 300e3, 2, [5.0, 4.0])
    assert (again.keeps.tolist(), again.work.capacity) == (found.keeps.tolist(), found.work.capacity)
    blocks = again.rest(chain)
    assert blocks.tuples.tolist() == whole.tuples.tolist()
    assert blocks.punctuations.tolist() == whole.punctuations.tolist()


def test_drops_depend_on_the_seed_alone_and_the_rest_is_a_chain_of_its_own():
    chain = bound([stateless("a"), stateful("b")], ROWS)
    first, again, other = (shed(chain, 300e3, 1, [5.0, 1.0], seed=seed) for seed in (1, 1, 2))
    kept = [np.concatenate([*each.kept()]).tolist() for each in (first, again, other)]
    assert kept[0] == kept[1] != kept[2]
    rest = first.rest(chain)
    assert rest.tuples.tolist() == chain.tuples[kept[0]].tolist()
    expected = first.keeps.mean()
    assert rest.rows / ROWS == pytest.approx(expected, abs=0.02)
    assert run_serially(rest).inputs[0] == rest.rows
