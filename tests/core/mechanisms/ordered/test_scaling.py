"""Workers of the ordered runtime that are parked and woken in a comparison."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from adapt.core.elastic.policies.names import Alignment, ScalingPolicy
from adapt.core.elastic.policies.scale_on import ScaleOn
from adapt.core.elastic.replay.outcome import elastic_outcome_of
from adapt.core.errors import UsageError
from adapt.core.fit.network.names import DropPlanner
from adapt.core.mechanisms.ordered.stage import run_ordered
from adapt.core.mechanisms.scenario import check_scenario
from adapt.core.mechanisms.scenarios import Scenario, chosen, own_scenarios, sharing_memory
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.scaling import AutoScaling
from adapt.core.own.own_code import OwnCode
from adapt.core.stage.conditions.names import Migrating, RestartName
from adapt.core.stage.control.workers import Decision
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.stage.outcome import outcome_of
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

PERIOD_S = 0.01


@dataclass
class Listed:
    """Decides on the listed numbers of workers, one a period, and keeps the last."""

    wanted: list[int]
    least: int
    pool: int

    def decide(self, seen, waiting):
        return Decision(self.wanted.pop(0) if self.wanted else seen.workers), waiting


def listed(wanted, least, pool):
    return AutoScaling("listed", lambda _: Listed(list(wanted), least, pool), PERIOD_S)


def changes(wanted, least):
    """Times and numbers of workers by hand."""
    sizes = [(0.0, least)]
    for at, size in enumerate(wanted):
        if size != sizes[-1][1]:
            sizes.append(((at + 1) * PERIOD_S, size))
    return sizes


@pytest.mark.parametrize("work_queue", [HYBRID, PARTITIONED])
@pytest.mark.parametrize("workers", [2, 4, 7])
def test_fixed_workers_are_the_member_without_a_policy_to_the_nanosecond(work_queue, workers):
    terms = TERMS.with_channels(workers)
    fixed = Scenario("x", ordered=work_queue, elastic=ScalingPolicy.FIXED, workers=workers, pool=workers)
    (_, done, found), (_, plain, expected) = (
        cells_of(each, terms) for each in (fixed, Scenario("x", ordered=work_queue))
    )
    assert found == expected
    assert done.finished_s == plain.finished_s
    for one, other in zip(done.intervals, plain.intervals, strict=True):
        assert (one.end_s, one.total.sum_s, one.total.max_s) == (other.end_s, other.total.sum_s, other.total.max_s)
        assert one.by_worker.tolist() == other.by_worker.tolist()
        assert one.idle.tolist() == other.idle.tolist()


def test_parked_workers_change_nothing():
    of_rows, arrivals, services = stream_of(5, 0.9, 3, 12, 1.0)
    rows = rows_of(of_rows, arrivals, services)
    few = run_ordered(HYBRID, rows, stage_of(3, 12), PERIOD_S, None)
    many = run_ordered(HYBRID, rows, stage_of(9, 12), PERIOD_S, None, listed([], 3, 9))
    assert [one.total.sum_s for one in many.intervals] == [one.total.sum_s for one in few.intervals]
    assert many.workers == few.workers == [(0.0, 3)]
    assert all((one.idle[3:] == 1).all() and not one.by_worker[3:].any() for one in many.intervals)


@pytest.mark.parametrize("load", [0.6, 0.95, 1.4])
@pytest.mark.parametrize(("pool", "partitions", "skew"), [(4, 8, 1.0), (6, 64, 0.5), (8, 6, 2.0)])
def test_rows_leave_as_in_one_queue_whose_workers_come_and_go(load, pool, partitions, skew):
    of_rows, arrivals, services = stream_of(pool, load, pool / 2, partitions, skew)
    services += 200_000  # longer than a slice, so that a worker is asked after each row whether to go on
    wanted = np.random.default_rng(pool).integers(1, pool + 1, 60).tolist()
    rows, settings = rows_of(of_rows, arrivals, services), stage_of(pool, partitions)
    found, scaled = marks_of(HYBRID, rows, settings, Contention(), listed(wanted, 2, pool))
    sizes = changes(wanted, 2)
    start, end, left = in_order(of_rows, arrivals, services, [(round(at_s * 1e9), size) for at_s, size in sizes])
    assert found.entered.tolist() == start.tolist()
    assert found.served.tolist() == end.tolist()
    assert found.left.tolist() == left.tolist()
    seen = [size for size in sizes if size[0] < left[-1] / 1e9]
    assert [at_s for at_s, _ in scaled.sizes] == pytest.approx([at_s for at_s, _ in seen])
    assert [size for _, size in scaled.sizes] == [size for _, size in seen]
    assert len(seen) > 5


@pytest.mark.parametrize("until_s", [None, 0.047])
def test_worker_seconds_are_the_integral_of_the_steps(until_s):
    of_rows, arrivals, services = stream_of(1, 1.0, 3, 16, 1.0)
    wanted, rows, settings = [3, 3, 5, 5, 1, 1, 6, 2, 2, 4], rows_of(of_rows, arrivals, services), stage_of(6, 16)
    done = run_ordered(HYBRID, rows, settings, 0.02, until_s, listed(wanted, 2, 6))
    end_s, sizes = done.intervals[-1].end_s, changes(wanted, 2)
    by_hand = 0.0
    for (start_s, size), (stop_s, _) in pairwise([*sizes, (np.inf, 0)]):
        by_hand += size * max(0.0, min(stop_s, end_s) - start_s)
    demand = Demand.from_chunks(rows.chunks(), settings)
    outcome = elastic_outcome_of(outcome_of("x", done, bounds_of(demand, settings)))
    assert outcome.worker_s == pytest.approx(by_hand)
    assert outcome.most_workers == max(size for at_s, size in sizes if at_s < end_s)
    steps = [(before, after) for (_, before), (at_s, after) in pairwise(sizes) if at_s < end_s]
    assert [(step.before, step.after) for step in done.steps] == steps
    assert outcome.restarts == len(steps) > 1
    marks, _ = marks_of(HYBRID, rows, settings, scaling=listed(wanted, 2, 6))
    calm_s = {}
    for number in range(1, round(end_s / PERIOD_S)):
        until_ns = number * PERIOD_S * 1e9
        arrived = (arrivals <= until_ns).sum()
        waiting = arrived - (marks.served < until_ns).sum()
        calm_s[number] = waiting <= arrived - (arrivals <= until_ns - PERIOD_S * 1e9).sum()
        for step in done.steps:
            if round(step.decided_s / PERIOD_S) == number:
                assert step.waited == waiting
    for step in done.steps:
        after = [number for number, calm in calm_s.items() if calm and number > round(step.decided_s / PERIOD_S)]
        assert step.caught_up_s == (pytest.approx(after[0] * PERIOD_S) if after else None)


@pytest.mark.parametrize("name", ["ordered-elastic", "ordered-ds2"])
def test_a_built_in_member_scales_and_is_charged_for_workers_alone(name):
    _, done, found = cells_of(chosen([name])[1], TERMS)
    sizes = done.workers
    assert sizes[0] == (0.0, TERMS.least)
    assert found["restarts"] == len(sizes) - 1 > 0
    end_s = done.intervals[-1].end_s
    spans = pairwise([*sizes, (end_s, 0)])
    worker_s = sum((stop_s - start_s) * size for (start_s, size), (stop_s, _) in spans)
    assert found["worker_time"] == pytest.approx(worker_s)
    assert (found["moved"], found["paused"], found["downtime"], found["drop_rate"]) == (0, 0, 0, 0)
    assert found["processed"] == len(AT_S)
    assert found["load"] == pytest.approx(len(AT_S) * (1e-3 + 0.5e-6) / TERMS.least / AT_S[-1], rel=1e-3)
    assert cells_of(chosen([name])[1], TERMS)[2] == found


def test_ds2_has_the_work_that_arrives_over_its_target_utilization():
    scenario = Scenario("x", ordered=HYBRID, elastic=ScalingPolicy.DS2, utilization=0.75)
    done = cells_of(scenario, TERMS)[1]
    half_s = AT_S[-1] / 2
    settled = {size for at_s, size in done.workers if at_s > half_s}
    assert settled <= {3, 4, 5}  # 3,000 rows/s of 1 ms over 0.75
    assert done.workers[-1][1] in {3, 4, 5}


def test_a_policy_of_your_own_runs_on_the_ordered_runtime_by_its_name():
    class Three:
        def workers(self, view):
            return 3

    own = OwnCode("policy", "mine:Three", "", "", Three)
    (alone,) = own_scenarios([own])
    (shared,) = sharing_memory([alone])
    assert (shared.name, shared.elastic, shared.ordered) == ("ordered-mine.Three", own, HYBRID)
    assert [one.name for one in chosen(["ordered-mine.Three"], by_name=[shared])] == [
        "static-uniform",
        "ordered-mine.Three",
    ]
    assert "ordered-mine.Three" not in [one.name for one in chosen([], by_name=[shared])]
    done = cells_of(replace(shared, workers=1), TERMS)[1]
    assert [size for _, size in done.workers] == [1, 3]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"migrating": Migrating.RESTART}, "ordered and migrate exclude each other; remove one"),
        ({"restart": RestartName.KAFKA_EAGER}, "ordered and restart exclude each other; remove one"),
        ({"alignment": Alignment.FACTORS}, "ordered and alignment exclude each other; remove one"),
        ({"scale_on": ScaleOn(None)}, "ordered and scale_on exclude each other; remove one"),
        ({"rebuilds": True}, "ordered and rebuild exclude each other; remove one"),
        ({"drops": DropPlanner.EXACT}, "drop and elastic exclude each other; remove one"),
    ],
)
def test_what_shared_memory_does_not_have_is_refused(said, sentence):
    with pytest.raises(UsageError, match=f"scenario 'x': {sentence}"):
        Scenario("x", ordered=HYBRID, **{"elastic": ScalingPolicy.DS2, **said})


def test_a_pool_larger_than_the_model_is_refused():
    with pytest.raises(UsageError, match=r"scenario 'ordered-ds2': workers must be from 1 to 256 \(got 400\)"):
        check_scenario(chosen(["ordered-ds2"])[1], TERMS.with_channels(200))
