"""The ordered runtime as a scenario, against a plain event simulation of one queue with order."""

import heapq
from collections import deque
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.mechanisms.cost_model import Wanted
from adapt.core.mechanisms.ordered.stage import ordered_marks, run_ordered
from adapt.core.mechanisms.outcome import OUTCOME_COLUMNS, outcome_of_scenario, outcome_row
from adapt.core.mechanisms.scenario import Stream, check_scenario, simulated, staged
from adapt.core.mechanisms.scenarios import BY_NAME, Scenario, chosen
from adapt.core.mechanisms.sustainable import is_sustained
from adapt.core.ordered.chain.names import OrderedWorkQueue
from adapt.core.ordered.engine.contention import Contention
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.input.speed import Speed

HYBRID, PARTITIONED = OrderedWorkQueue.HYBRID, OrderedWorkQueue.PARTITIONED
ROWS = 400


def stream_of(seed, load, workers, partitions, skew):
    """Partitions, arrivals and services in ns; a third of the rows arrive together."""
    random = np.random.default_rng(seed)
    weights = np.arange(1, partitions + 1) ** -skew
    of_rows = random.choice(partitions, ROWS, p=weights / weights.sum())
    services = (random.exponential(1e6, ROWS) + 1).astype(np.int64)
    gaps = random.exponential(1e6 / load / workers, ROWS) * (random.random(ROWS) > 0.33)
    return of_rows, np.cumsum(gaps).astype(np.int64), services


def stage_of(workers, partitions):
    groups = even_groups(partitions, partitions)
    owners = (np.arange(partitions) % workers).astype(np.int32)
    return StageSettings(workers, owners, groups, costs=Costs(produce_s=0.0))


def rows_of(of_rows, arrivals, services, cuts=(150,)):
    """The stream, cut into chunks."""

    def chunks():
        for part in zip(*(np.split(each, cuts) for each in (of_rows, arrivals, services)), strict=True):
            yield Chunk(part[0], np.zeros(len(part[0]), np.int32), part[1] / 1e9, part[2] / 1e9)

    return Rows(chunks)


def in_order(of_rows, arrivals, services, workers):
    """Start, end and departure of each row: idle workers take the next row, or leave it to who has its partition."""
    start, end = np.zeros(ROWS, np.int64), np.zeros(ROWS, np.int64)
    waiting, mine, idle = deque(), {}, workers
    events = [(int(when), 1, row) for row, when in enumerate(arrivals)]
    heapq.heapify(events)
    while events:
        now, is_arrival, row = heapq.heappop(events)
        if is_arrival:
            waiting.append(row)
        elif mine[of_rows[row]]:
            begun = mine[of_rows[row]].popleft()
            start[begun], end[begun] = now, now + services[begun]
            heapq.heappush(events, (int(end[begun]), 0, begun))
        else:
            del mine[of_rows[row]]
            idle += 1
        while idle and waiting:
            row = waiting.popleft()
            if of_rows[row] in mine:
                mine[of_rows[row]].append(row)
                continue
            mine[of_rows[row]] = deque()
            start[row], end[row] = now, now + services[row]
            heapq.heappush(events, (int(end[row]), 0, row))
            idle -= 1
    return start, end, np.maximum.accumulate(end)


@pytest.mark.parametrize("load", [0.5, 0.95, 1.3])
@pytest.mark.parametrize(("workers", "partitions", "skew"), [(2, 1, 0.0), (3, 8, 1.0), (5, 64, 0.5), (8, 4, 2.0)])
def test_rows_start_end_and_leave_as_in_one_queue_with_order(load, workers, partitions, skew):
    of_rows, arrivals, services = stream_of(workers, load, workers, partitions, skew)
    found = ordered_marks(HYBRID, rows_of(of_rows, arrivals, services), stage_of(workers, partitions), Contention())
    start, end, left = in_order(of_rows, arrivals, services, workers)
    assert found.fed.tolist() == arrivals.tolist()
    assert found.entered.tolist() == start.tolist()
    assert found.served.tolist() == end.tolist()
    assert found.left.tolist() == left.tolist()


@pytest.mark.parametrize("work_queue", [HYBRID, PARTITIONED])
def test_one_partition_follows_lindleys_recursion(work_queue):
    of_rows, arrivals, services = stream_of(1, 0.4, 2, 1, 0.0)
    found = ordered_marks(work_queue, rows_of(of_rows, arrivals, services), stage_of(2, 1), Contention())
    free, ends = 0, []
    for arrival, service in zip(arrivals.tolist(), services.tolist(), strict=True):
        free = max(arrival, free) + service
        ends.append(free)
    assert found.left.tolist() == ends


def test_intervals_count_every_row_once_and_all_work():
    of_rows, arrivals, services = stream_of(3, 1.1, 3, 8, 1.0)
    rows, settings = rows_of(of_rows, arrivals, services), stage_of(3, 8)
    found = run_ordered(HYBRID, rows, settings, 0.01, None)
    marks = ordered_marks(HYBRID, rows, settings)
    lasts_s = [one.end_s - one.start_s for one in found.intervals]
    assert sum(one.processed for one in found.intervals) == sum(one.generated for one in found.intervals) == ROWS
    assert sum(one.by_worker for one in found.intervals).tolist() == np.bincount(marks.worker, minlength=3).tolist()
    busy_s = sum((1 - one.idle).sum() * lasted for one, lasted in zip(found.intervals, lasts_s, strict=True))
    assert busy_s == pytest.approx((marks.served - marks.entered).sum() / 1e9)
    assert max(one.total.max_s for one in found.intervals) == pytest.approx((marks.left - marks.fed).max() / 1e9)
    assert max(one.lag_s for one in found.intervals) == pytest.approx((marks.entered - marks.fed).max() / 1e9)
    waiting = [((arrivals <= one.end_s * 1e9) & (marks.entered > one.end_s * 1e9)).sum() for one in found.intervals]
    assert [one.source_queue for one in found.intervals] == waiting
    assert found.finished_s == sum(lasts_s) == pytest.approx(marks.left[-1] / 1e9)


def test_a_run_that_is_cut_off_says_what_is_left():
    of_rows, arrivals, services = stream_of(3, 2.0, 3, 8, 1.0)
    rows, settings = rows_of(of_rows, arrivals, services), stage_of(3, 8)
    until_s = float(arrivals[-1]) / 1e9
    found, left = run_ordered(HYBRID, rows, settings, 0.01, until_s), ordered_marks(HYBRID, rows, settings).left
    assert found.intervals[-1].end_s == until_s
    assert found.census.processed == (left <= until_s * 1e9).sum() < ROWS
    assert found.census.whole
    assert not is_sustained(found.intervals, until_s)


AT_S = np.cumsum(np.random.default_rng(1).exponential(1 / 3000, 6000))
BATCH = pa.record_batch(
    {
        "ts": pa.array((AT_S * 1e6).astype(np.int64)),
        "key": pa.array(np.random.default_rng(2).integers(0, 300, len(AT_S)).astype(str)),
    }
)


def keyed(reading):
    return reading.rows(lambda: iter([BATCH]))


WANTED = Wanted(4, costs=Costs(1e-3, 2e-4, 0.5e-6), speed=Speed(growth=1.0))
TERMS = WANTED.terms(Demand.from_chunks(keyed(Reading(MiniPartitions(4, 64))).chunks(), WANTED.uniform))
STREAM = Stream(keyed, lambda: pytest.fail("nothing is counted"), lambda _: None)


@pytest.mark.parametrize("name", ["ordered-hybrid", "ordered-partitioned"])
@pytest.mark.parametrize("workers", [4, 6])
def test_outcomes_are_those_of_the_rows(name, workers):
    scenario, terms = chosen([name])[1], TERMS.with_channels(workers)
    stage = staged(scenario, terms, STREAM)
    row = outcome_row(
        outcome_of_scenario(scenario, stage, simulated(scenario, terms, stage, None)), stage.bounds, stage
    )
    found = dict(zip((column.name for column in OUTCOME_COLUMNS), row, strict=True))
    marks = ordered_marks(scenario.ordered, stage.rows, stage.settings)
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
    again = outcome_row(
        outcome_of_scenario(scenario, stage, simulated(scenario, terms, stage, None)), stage.bounds, stage
    )
    assert again == row


def test_another_seed_draws_other_service_times():
    scenario, p99 = BY_NAME[-2], []
    for seed in (0, 1):
        terms = replace(TERMS, seed=seed)
        stage = staged(scenario, terms, STREAM)
        p99.append(simulated(scenario, terms, stage, None).finished_s)
    assert p99[0] != p99[1]


def test_more_workers_than_the_model_has_are_refused():
    with pytest.raises(UsageError, match=r"scenario 'ordered-hybrid': workers must be from 1 to 256 \(got 300\)"):
        check_scenario(BY_NAME[-2], TERMS.with_channels(300))
    with pytest.raises(UsageError, match="scenario 'x': ordered and shed exclude each other"):
        Scenario("x", ordered=HYBRID, sheds=True)
