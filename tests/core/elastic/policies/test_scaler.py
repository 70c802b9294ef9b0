"""What is done of what is wanted: bounds, holds, whole shares, and no oscillation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.elastic.policies.engine_scalers import LagThreshold
from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.elastic.policies.registry import POLICIES, Chosen, policy_of
from adapt.core.elastic.policies.scaler import ElasticController, Patience, Rebuild, aligned_to
from adapt.core.elastic.policies.thresholds import FixedWorkers, ThresholdScaling, TrueRates
from adapt.core.errors import UsageError
from adapt.core.stage.control.workers import Waiting
from tests.core.elastic.observations import seen
from tests.core.elastic.policies.test_thresholds import W, thresholds


class Wants:
    """A policy that wants what it is told to."""

    def __init__(self, workers):
        self.workers = workers

    def wanted(self, observed):
        return self.workers


def periods(controller, wanted, present=4):
    """The number of workers after each period of a second in which so many were wanted."""
    waiting, workers, numbers = Waiting(), present, []
    for at, want in enumerate(wanted):
        controller.policy.workers = want
        decision, waiting = controller.decide(seen(float(at), workers), waiting)
        waiting = waiting if decision.workers == workers else Waiting(float(at))
        workers = decision.workers
        numbers.append(workers)
    return numbers


def test_more_workers_come_when_they_were_wanted_all_the_time():
    controller = ElasticController(Wants(4), 2, 9, Patience(2.0, 3.0))
    assert periods(controller, [6, 6, 7, 4]) == [4, 4, 7, 7]
    assert periods(controller, [6, 6, 4, 6, 6, 6]) == [4, 4, 4, 4, 4, 6]
    assert periods(controller, [99, 99, 99]) == [4, 4, 9]


def test_fewer_workers_are_the_most_that_were_wanted_meanwhile():
    controller = ElasticController(Wants(4), 2, 9, Patience(2.0, 3.0))
    assert periods(controller, [2, 3, 2, 2]) == [4, 4, 4, 3]
    assert periods(controller, [1, 1, 1, 1]) == [4, 4, 4, 2]
    assert periods(controller, [1, 1, 4, 1, 1, 1, 1]) == [4, 4, 4, 4, 4, 4, 2]


@given(st.integers(1, 10), st.integers(0, 10), st.lists(st.integers(0, 40), max_size=40), st.booleans())
def test_there_are_never_fewer_than_m_nor_more_than_the_pool(least, more, wanted, whole):
    alignment = Alignment.FACTORS if whole else Alignment.ANY
    controller = ElasticController(Wants(0), least, least + more, Patience(1, 1), Rebuild(), 24, alignment)
    assert all(least <= workers <= least + more for workers in periods(controller, wanted, least))


@pytest.mark.parametrize(("wanted", "number"), [(1, 1), (2, 2), (3, 5), (6, 10), (11, 10)])
def test_ten_partitions_are_dealt_to_1_2_5_or_10_workers(wanted, number):
    assert aligned_to(10, wanted, 99) == number
    assert aligned_to(10, wanted, 8) == min(number, 5)


def test_whole_shares_never_turn_a_wish_round():
    controller = ElasticController(Wants(4), 1, 8, Patience(1, 1), Rebuild(), 10, Alignment.FACTORS)
    assert periods(controller, [3, 3, 3], present=4) == [4, 4, 4]
    assert periods(controller, [7, 7], present=6) == [6, 6]


@given(
    thresholds(),
    st.floats(0, 12),
    st.integers(1, 12),
    st.integers(0, 12),
    st.sampled_from([ScalingPolicy.THRESHOLDS, ScalingPolicy.DS2]),
)
def test_under_a_constant_load_there_is_no_oscillation(of, load, least, more, name):
    """The workers are full in proportion, so that one step, or none, is all there is to do."""
    pool = least + more
    policy = policy_of(name, Chosen(of, Signal.OFFERED, W))
    controller = ElasticController(policy, least, pool, Patience(2, 3))
    for start in {least, pool, (least + pool) // 2}:
        waiting, workers, steps = Waiting(), start, 0
        for at in range(30):
            busy = np.full(workers, load / workers)
            now = seen(at, workers, offered=load * W, busy_s=busy, processed=busy * 1e3, arrived=load * 1e3)
            decision, waiting = controller.decide(now, waiting)
            if decision.workers != workers:
                workers, waiting, steps = decision.workers, Waiting(at), steps + 1
        assert steps <= 1


def test_ds2_goes_by_what_workers_do_while_they_work():
    """Two workers do 100 tuples in half a second each, so 200 tuples/s; 1000 tuples/s take 5 of them."""
    observed = seen(workers=2, arrived=1000)
    assert TrueRates(1.0).wanted(observed) == 5
    assert TrueRates(0.5).wanted(observed) == 10
    assert TrueRates().wanted(seen(workers=2, processed=np.zeros(2, int), busy_s=np.zeros(2))) == 2


def test_a_lag_wants_a_worker_for_so_many_rows():
    policy = LagThreshold(100)
    assert policy.wanted(seen(workers=4, waiting=1000)) == 10
    assert policy.wanted(seen(workers=4, waiting=1001)) == 11
    assert policy.wanted(seen(workers=4, waiting=0)) == 1
    assert [policy.wanted(seen(workers=10, waiting=lag)) for lag in (899, 901, 1099, 1101)] == [9, 10, 10, 12]


def test_a_plan_is_built_anew_by_the_clock_or_by_imbalance():
    def rebuilt(rebuild, at_s, loads=(1, 1, 1, 1), changed_s=0.0):
        controller = ElasticController(FixedWorkers(), 4, 4, Patience(), rebuild)
        decision, _ = controller.decide(seen(at_s, loads=np.array(loads)), Waiting(changed_s))
        assert decision.workers == 4
        return decision.rebuild

    assert [rebuilt(Rebuild(every_s=10), at) for at in (9, 10, 11)] == [False, True, True]
    assert [rebuilt(Rebuild(every_s=10), 12, changed_s=3)] == [False]
    assert [rebuilt(Rebuild(limit=1.5), 9, loads) for loads in ((3, 2, 2, 1), (4, 2, 1, 1))] == [False, True]
    assert not rebuilt(Rebuild(limit=1.5), 4, (4, 2, 1, 1))
    assert not rebuilt(Rebuild(), 1e6, (4, 2, 1, 1))


def test_every_policy_is_listed():
    assert set(POLICIES) == set(ScalingPolicy)
    assert policy_of(ScalingPolicy.FIXED).wanted(seen(workers=7, waiting=10**9)) == 7
    assert isinstance(policy_of(ScalingPolicy.THRESHOLDS), ThresholdScaling)


def test_numbers_out_of_range_are_refused():
    for wrong, said in (
        (lambda: ElasticController(FixedWorkers(), 5, 4), "pool of 4 workers is smaller than the 5"),
        (lambda: ElasticController(FixedWorkers(), 0, 4), "at least 1 worker"),
        (lambda: Patience(0.0), "scale-out delay must be above 0"),
        (lambda: Patience(1.0, -2.0), "cooldown must be above 0"),
        (lambda: Patience(1.0, float("nan")), "cooldown must be above 0"),
        (lambda: Rebuild(every_s=0.0), "time between rebuilds must be above 0"),
        (lambda: Rebuild(limit=0.9), "at least 1 \\(got 0.9\\)"),
        (lambda: TrueRates(1.1), "at most 1"),
        (lambda: LagThreshold(0), "above 0"),
        (lambda: LagThreshold(1, -1), "at least 0"),
    ):
        with pytest.raises(UsageError, match=said):
            wrong()
