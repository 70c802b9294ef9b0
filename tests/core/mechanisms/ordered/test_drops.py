"""Rows that a planner drops before workers that share memory, against the closed form and a queue of the rest."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.fit.network.names import DropPlanner
from adapt.core.mechanisms.ordered.drops import kept_in_order, shed_in_order
from adapt.core.mechanisms.scenarios import Scenario, chosen
from adapt.core.ordered.engine.contention import Contention
from adapt.core.stage.conditions.arrivals import Rows
from tests.core.mechanisms.ordered.queues import (
    AT_S,
    HYBRID,
    PARTITIONED,
    TERMS,
    cells_of,
    in_order,
    marks_of,
    rows_of,
    stage_of,
    stream_of,
)

HEADROOM, TICK_S = 0.05, 0.01
FAST = replace(TERMS, speedup=2.5, period_s=0.02)
"""7,500 rows/s of 1 ms for four workers."""


def whole(rows: Rows):
    """All columns of the rows that are read."""
    parts = [(each.groups, each.due_s, each.cost_s, each.numbers) for each in rows.chunks()]
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def places(shed):
    return np.concatenate(list(shed.kept()))


@pytest.mark.parametrize("planner", [DropPlanner.EXACT, DropPlanner.C_FIT, DropPlanner.GREEDY_LOCAL])
@pytest.mark.parametrize(("workers", "load"), [(2, 1.5), (3, 3.0), (4, 0.7)])
def test_each_tick_keeps_the_capacity_over_the_rate_of_the_tick_before(planner, workers, load):
    of_rows, arrivals, services = stream_of(workers, load, workers, 64, 0.0)
    rows, settings = rows_of(of_rows, arrivals, services), stage_of(workers, 64)
    shed = shed_in_order(planner, rows, settings, TICK_S)
    counts = np.bincount((arrivals / 1e9 / TICK_S).astype(int))
    could = (1 - HEADROOM) * workers * TICK_S / (services.mean() / 1e9)
    expected = [1.0, *(min(1.0, could / max(count, 1)) for count in counts[:-1])]
    assert shed.keeps == pytest.approx(expected, abs=0.03 if planner is DropPlanner.C_FIT else 0.01)
    assert shed.rows == len(arrivals)
    assert len(places(shed)) == pytest.approx((counts * expected).sum(), abs=4 * np.sqrt(len(arrivals) / 4) + 1)


def test_a_partition_that_one_worker_cannot_do_limits_the_capacity():
    of_rows, arrivals, services = stream_of(1, 2.0, 4, 8, 3.0)
    shed = shed_in_order(DropPlanner.EXACT, rows_of(of_rows, arrivals, services), stage_of(4, 8), TICK_S)
    hottest = np.bincount(of_rows).max() / len(of_rows)
    assert hottest > 0.5
    assert shed.work.capacity == pytest.approx(1 / hottest)


@pytest.mark.parametrize("load", [1.3, 2.5])
def test_the_rows_that_are_kept_run_as_a_stream_of_their_own(load):
    of_rows, arrivals, services = stream_of(4, load, 3, 12, 1.0)
    rows, settings = rows_of(of_rows, arrivals, services), stage_of(3, 12)
    kept = places(shed_in_order(DropPlanner.EXACT, rows, settings, TICK_S))
    rest = kept_in_order(DropPlanner.EXACT, rows, settings, TICK_S)
    columns = whole(rest)
    assert columns[3].tolist() == kept.tolist()
    assert (np.rint(columns[1] * 1e9) == arrivals[kept]).all()
    assert (np.rint(columns[2] * 1e9) == services[kept]).all()
    assert 0 < len(kept) < len(arrivals)
    found = marks_of(HYBRID, rest, settings, Contention())
    start, _, left = in_order(of_rows[kept], arrivals[kept], services[kept], [(0, 3)])
    assert found.entered.tolist() == start.tolist()
    assert found.left.tolist() == left.tolist()


@pytest.mark.parametrize("work_queue", [HYBRID, PARTITIONED])
def test_counts_add_up(work_queue):
    scenario = Scenario("x", ordered=work_queue, drops=DropPlanner.EXACT)
    stage, done, found = cells_of(scenario, FAST)
    assert found["processed"] + stage.dropped == len(AT_S)
    assert found["processed"] == done.census.processed == sum(one.processed for one in done.intervals)
    assert found["drop_rate"] == pytest.approx(stage.dropped / len(AT_S))
    assert 0.35 < found["drop_rate"] < 0.6  # 4 workers do 0.95 * 4,000 of 7,500 rows/s
    assert (found["messages"], found["message_bytes"]) == (0, 0)
    without = cells_of(Scenario("x", ordered=work_queue), FAST)[2]
    assert found["p99"] < without["p99"] / 3
    assert cells_of(scenario, FAST)[2] == found


def test_a_run_that_is_cut_off_counts_the_rows_that_are_left():
    stage, _, found = cells_of(chosen(["ordered-shed-c-fit"])[1], replace(FAST, duration_s=0.5))
    arrived = (AT_S / 2.5 <= 0.5).sum()
    assert found["processed"] + found["unprocessed"] + stage.dropped == arrived < len(AT_S)


def test_a_row_that_is_kept_takes_as_long_as_without_drops_and_a_seed_draws_others():
    stage = cells_of(chosen(["ordered-shed-c-fit"])[1], FAST)[0]
    plain = cells_of(chosen(["ordered-hybrid"])[1], FAST)[0]
    kept = whole_numbers(stage.rows)
    service = marks_of(HYBRID, stage.rows, stage.settings, Contention())
    of_all = marks_of(HYBRID, plain.rows, plain.settings, Contention())
    took, all_took = service.served - service.entered, of_all.served - of_all.entered
    assert took.tolist() == all_took[kept].tolist()
    other = cells_of(chosen(["ordered-shed-c-fit"])[1], replace(FAST, seed=7))[0]
    assert whole_numbers(other.rows).tolist() != kept.tolist()


def whole_numbers(rows: Rows):
    return np.concatenate([each.numbers for each in rows.chunks()])
