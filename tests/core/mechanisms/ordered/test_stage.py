"""The ordered runtime as a scenario, against a plain event simulation of one queue with order."""

from dataclasses import replace

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.mechanisms.ordered.stage import run_ordered
from adapt.core.mechanisms.scenario import check_scenario
from adapt.core.mechanisms.scenarios import BY_NAME, Scenario, chosen
from adapt.core.mechanisms.sustainable import is_sustained
from adapt.core.ordered.engine.settings import Contention
from tests.core.mechanisms.ordered.queues import (
    AT_S,
    HYBRID,
    PARTITIONED,
    ROWS,
    TERMS,
    cells_of,
    in_order,
    marks_of,
    rows_of,
    stage_of,
    stream_of,
)

NAMED = {one.name: one for one in BY_NAME}


@pytest.mark.parametrize("load", [0.5, 0.95, 1.3])
@pytest.mark.parametrize(("workers", "partitions", "skew"), [(2, 1, 0.0), (3, 8, 1.0), (5, 64, 0.5), (8, 4, 2.0)])
def test_rows_start_end_and_leave_as_in_one_queue_with_order(load, workers, partitions, skew):
    of_rows, arrivals, services = stream_of(workers, load, workers, partitions, skew)
    found = marks_of(HYBRID, rows_of(of_rows, arrivals, services), stage_of(workers, partitions), Contention())
    start, end, left = in_order(of_rows, arrivals, services, [(0, workers)])
    assert found.fed.tolist() == arrivals.tolist()
    assert found.entered.tolist() == start.tolist()
    assert found.served.tolist() == end.tolist()
    assert found.left.tolist() == left.tolist()


@pytest.mark.parametrize("work_queue", [HYBRID, PARTITIONED])
def test_one_partition_follows_lindleys_recursion(work_queue):
    of_rows, arrivals, services = stream_of(1, 0.4, 2, 1, 0.0)
    found = marks_of(work_queue, rows_of(of_rows, arrivals, services), stage_of(2, 1), Contention())
    free, ends = 0, []
    for arrival, service in zip(arrivals.tolist(), services.tolist(), strict=True):
        free = max(arrival, free) + service
        ends.append(free)
    assert found.left.tolist() == ends


def test_intervals_count_every_row_once_and_all_work():
    of_rows, arrivals, services = stream_of(3, 1.1, 3, 8, 1.0)
    rows, settings = rows_of(of_rows, arrivals, services), stage_of(3, 8)
    found = run_ordered(HYBRID, rows, settings, 0.01, None)
    marks = marks_of(HYBRID, rows, settings)
    lasts_s = [one.end_s - one.start_s for one in found.intervals]
    assert sum(one.processed for one in found.intervals) == sum(one.generated for one in found.intervals) == ROWS
    assert sum(one.by_worker for one in found.intervals).tolist() == np.bincount(marks.worker, minlength=3).tolist()
    busy_s = sum((1 - one.idle).sum() * lasted for one, lasted in zip(found.intervals, lasts_s, strict=True))
    assert busy_s == pytest.approx((marks.served - marks.entered).sum() / 1e9)
    assert max(one.total.max_s for one in found.intervals) == pytest.approx((marks.left - marks.fed).max() / 1e9)
    assert max(one.waited_s for one in found.intervals) == pytest.approx((marks.entered - marks.fed).max() / 1e9)
    assert max(one.lag for one in found.intervals) == max(
        ((marks.fed <= at) & (marks.left >= at)).sum() for at in marks.fed
    )
    waiting = [((arrivals <= one.end_s * 1e9) & (marks.entered > one.end_s * 1e9)).sum() for one in found.intervals]
    assert [one.source_queue for one in found.intervals] == waiting
    assert found.finished_s == sum(lasts_s) == pytest.approx(marks.left[-1] / 1e9)


def test_a_run_that_is_cut_off_says_what_is_left():
    of_rows, arrivals, services = stream_of(3, 2.0, 3, 8, 1.0)
    rows, settings = rows_of(of_rows, arrivals, services), stage_of(3, 8)
    until_s = float(arrivals[-1]) / 1e9
    found, left = run_ordered(HYBRID, rows, settings, 0.01, until_s), marks_of(HYBRID, rows, settings).left
    assert found.intervals[-1].end_s == until_s
    assert found.census.processed == (left <= until_s * 1e9).sum() < ROWS
    assert found.census.whole
    assert not is_sustained(found.intervals, until_s)


@pytest.mark.parametrize("name", ["ordered-hybrid", "ordered-partitioned"])
@pytest.mark.parametrize("workers", [4, 6])
def test_outcomes_are_those_of_the_rows(name, workers):
    scenario, terms = chosen([name])[1], TERMS.with_channels(workers)
    stage, _, found = cells_of(scenario, terms)
    marks = marks_of(scenario.ordered, stage.rows, stage.settings)
    total_s = np.sort(marks.left - marks.fed) / 1e9
    assert found["processed"] == len(AT_S)
    assert found["worker_time"] == pytest.approx(workers * marks.left[-1] / 1e9)
    for share in (0.5, 0.95, 0.99):
        exact = total_s[int(share * len(total_s))]
        assert exact * 0.99 <= found[f"p{share * 100:.0f}"] <= exact * 1.04
    assert found["workers_mean"] == pytest.approx(workers)
    assert found["workers_max"] == workers
    assert found["queueing"] == "ordered"
    assert (found["moved"], found["restarts"], found["drop_rate"]) == (0, 0, 0)
    assert found["load"] == pytest.approx(len(AT_S) * (1e-3 + 0.5e-6) / workers / AT_S[-1], rel=1e-3)
    assert cells_of(scenario, terms)[2] == found


def test_another_seed_draws_other_service_times():
    scenario, p99 = NAMED["ordered-hybrid"], []
    for seed in (0, 1):
        p99.append(cells_of(scenario, replace(TERMS, seed=seed))[2]["finished"])
    assert p99[0] != p99[1]


def test_more_workers_than_the_model_has_are_refused():
    with pytest.raises(UsageError, match=r"scenario 'ordered-hybrid': workers must be from 1 to 256 \(got 300\)"):
        check_scenario(NAMED["ordered-hybrid"], TERMS.with_channels(300))
    with pytest.raises(UsageError, match="scenario 'x': ordered and shed exclude each other"):
        Scenario("x", ordered=HYBRID, sheds=True)
