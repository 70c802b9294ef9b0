"""Policies of other systems, against their own formulas and times."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.elastic.policies.engine_scalers import (
    AutoscalerOptions,
    DynamicAllocation,
    LagThreshold,
    Metrics,
    PodAutoscaler,
    capacity,
    is_outside,
    parallelism,
)
from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.registry import PUBLISHED, Chosen, migration_of, timed_policy
from adapt.core.elastic.policies.scaler import ElasticController, Epoch, Job, Patience, together
from adapt.core.elastic.policies.thresholds import ScalingManager, TrueRates
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import Migrating, RestartName
from adapt.core.stage.conditions.settings import RESTARTS
from adapt.core.stage.control.workers import Migration, Waiting
from tests.core.elastic.observations import seen

OPTIONS = AutoscalerOptions()


def course(policy, load, until_s, *, workers=1, pool=64, period_s=1.0, paused_s=0.0):
    """Times and numbers of the rescales while `load(at_s, workers)` gives what is observed each period."""
    controller = ElasticController(policy, 1, pool, None)
    rescales, at_s = [], 0.0
    while at_s < until_s:
        at_s += period_s
        observed = seen(at_s, workers, **{"collected_s": period_s, **load(at_s, workers)})
        wanted = controller.decide(observed, Waiting())[0].workers
        if wanted != workers:
            workers = wanted
            rescales.append((round(at_s, 6), workers))
            at_s += paused_s
    return rescales


def steady(rate, waiting=0, period_s=1.0):
    """Rows at a rate, of which a worker can do 100 a second; evenly spread."""

    def load(_, workers):
        busy_s = period_s * min(1.0, rate / workers / 100)
        processed = np.full(workers, round(busy_s * 100))
        arrived = round(rate * period_s)
        return {"arrived": arrived, "busy_s": np.full(workers, busy_s), "processed": processed, "waiting": waiting}

    return load


def test_successive_observations_are_one():
    parts = [seen(1.0, arrived=5, waiting=1), seen(2.0, arrived=7, waiting=4)]
    both = together(parts)
    assert (both.at_s, both.collected_s, both.arrived, both.waiting) == (2.0, 2.0, 12, 4)
    assert both.busy_s.tolist() == [1.0] * 4
    assert both.processed.tolist() == [200] * 4
    epoch = Epoch(2.0)
    assert epoch.add(parts[0]) is None
    assert epoch.add(parts[1]).arrived == 12
    assert epoch.add(parts[0]) is None


def test_a_gap_or_another_number_of_workers_is_a_start():
    job = Job()
    observed = [seen(1.0), seen(2.0), seen(3.0, 5), seen(4.0, 5), seen(6.0, 5), seen(7.0, 5)]
    assert [job.started(one) for one in observed] == [True, False, True, False, True, False]


def test_ds2_ignores_two_intervals_of_10_s_after_each_start():
    """Each of 12 s of the pause is unseen; then 20 s are ignored, and 10 s measured."""
    policy = ScalingManager(TrueRates(1.0))
    assert course(policy, steady(500), 200) == [(30.0, 5)]

    def rising(at_s, workers):
        return steady(500 if at_s <= 102 else 900)(at_s, workers)

    assert course(ScalingManager(TrueRates(1.0)), rising, 200, paused_s=12) == [(30.0, 5), (112.0, 9)]


def test_ds2_keeps_one_worker_too_many():
    assert course(ScalingManager(TrueRates(1.0)), steady(400), 200, workers=5) == []
    assert course(ScalingManager(TrueRates(1.0)), steady(300), 200, workers=5) == [(30.0, 3)]


def test_a_lag_grows_workers_by_4_or_twofold_every_15_s():
    load = steady(0, waiting=4000)
    assert course(PodAutoscaler(LagThreshold(100)), load, 60) == [(1.0, 5), (16.0, 10), (31.0, 20), (46.0, 40)]
    assert course(PodAutoscaler(LagThreshold(100, partitions=12)), load, 60) == [(1.0, 5), (16.0, 10), (31.0, 12)]


def test_a_lag_scales_in_to_the_largest_recommendation_of_300_s():
    def falling(at_s, _):
        return {"waiting": 1000 if at_s < 100 else 700 if at_s < 200 else 100}

    policy = PodAutoscaler(LagThreshold(100))
    assert course(policy, falling, 800, workers=10) == [(391.0, 7), (496.0, 1)]


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=80), st.integers(1, 20))
def test_the_pod_autoscaler_is_that_of_kubernetes(lags, workers):
    """normalizeDesiredReplicasWithBehaviors, word for word, every 15 s."""
    policy, rows = PodAutoscaler(LagThreshold(100.0)), 100.0
    replicas, recommendations = workers, []
    for index, lag in enumerate(lags):
        now = 15.0 * (index + 1)
        if not recommendations:
            recommendations.append((now, replicas))
        ratio = lag / (rows * replicas)
        desired = replicas if abs(1 - ratio) <= 0.1 else max(1, math.ceil(lag / rows))
        stabilized = desired
        if desired < replicas:
            stabilized = max([desired] + [one for at, one in recommendations if at > now - 300])
        recommendations.append((now, desired))
        if stabilized > replicas:
            stabilized = min(stabilized, max(replicas + 4, replicas * 2))
        assert policy.wanted(seen(now, replicas, waiting=lag)) == stabilized
        replicas = stabilized


def test_flinks_target_capacity():
    """9,000 rows to catch up with in 1,800 s, 300 s of restart to catch up with, and the rate at 70 %."""
    metrics = Metrics(rate=1000.0, true_rate=1000.0, lag=9000.0, input_rate=1000.0)
    assert capacity(OPTIONS, metrics, 0.7, True) == pytest.approx(5 + 1000 / 6 + 1000 / 0.7)
    assert capacity(OPTIONS, metrics, 1.5, False) == pytest.approx(5 + 1000)
    assert capacity(OPTIONS, metrics, 0.0, True) == math.inf


@pytest.mark.parametrize(
    ("true_rate", "lag", "outside"),
    [
        (999, 0, True),
        (1001, 0, False),
        (2666, 0, False),
        (2667, 0, True),  # 1000 / 0.4 + 1000 * 300 / 1800
        (1099, 180_000, True),  # 100 a second to catch up
        (1101, 180_000, False),
        (1150, 270_000, False),
        (1e9, 301_000, False),  # more than 5 min behind: no scale-in
        (math.inf, 0, True),
    ],
)
def test_flinks_bounds(true_rate, lag, outside):
    assert is_outside(OPTIONS, Metrics(1000.0, true_rate, lag, 1000.0)) is outside


@pytest.mark.parametrize(
    ("rate", "true_rate", "present", "groups", "number"),
    [
        (1000, 1000, 4, 128, 8),  # 1.595 x 4 = 6.4, and 7 does not divide 128
        (1000, 1000, 4, 7, 7),
        (100, 1000, 10, 128, 4),  # at most 60 % fewer
        (0, math.inf, 10, 120, 4),
        (1000, 1000, 16, 128, 16),  # all of the pool
        (1e9, 1, 1, 64, 16),
    ],
)
def test_flinks_parallelism(rate, true_rate, present, groups, number):
    assert parallelism(OPTIONS, Metrics(rate, true_rate, 0.0, rate), present, 16, groups) == number


def parallelism_literally(options, metrics, present, upper, groups):
    """JobVertexScaler.scale, word for word, in mode EVENLY_SPREAD."""
    factor = capacity(options, metrics, options.target, True) / metrics.true_rate
    factor = max(1 - options.most_down, min(factor, 1 + options.most_up))
    bound = min(groups, upper)
    new = min(max(1, math.ceil(factor * present - 1e-9)), bound)
    if new == present:
        return new
    up = new > present
    for p in range(new, (bound if up else min(present, bound)) + 1):
        if groups % p == 0:
            return p
    p = new
    while p > 0:
        if groups // p > groups // new:
            if groups % p != 0:
                p += 1
            break
        p -= 1
    p = max(p, 1)
    return present if (up and p <= present) or (not up and p >= present) else p


@given(st.floats(0, 1e4), st.floats(1, 1e4), st.integers(1, 40), st.integers(1, 40), st.integers(1, 300))
def test_flinks_parallelism_is_that_of_the_operator(rate, true_rate, present, pool, groups):
    present = min(present, pool, groups)
    metrics = Metrics(rate, true_rate, 0.0, rate)
    found = parallelism(OPTIONS, metrics, present, pool, groups)
    assert found == parallelism_literally(OPTIONS, metrics, present, pool, groups)
    assert 1 <= found <= min(pool, groups)


def test_flink_decides_first_after_20_min_and_scales_in_an_hour_later():
    chosen = Chosen(pool=16, partitions=128)
    flink = timed_policy(ScalingPolicy.FLINK, chosen, None)[0]
    assert course(flink, steady(300, 0, 5.0), 3000, pool=16, period_s=5.0) == [(1200.0, 8)]  # 4.8 over a true rate of 1
    flink = timed_policy(ScalingPolicy.FLINK, chosen, None)[0]
    assert course(flink, steady(50, 0, 5.0), 6000, workers=4, pool=16, period_s=5.0) == [(4800.0, 2)]


def test_spark_adds_twice_as_many_each_second_and_removes_idle_ones():
    pending = steady(10, waiting=100)
    assert course(DynamicAllocation(40), pending, 6, pool=40) == [(2.0, 2), (3.0, 4), (4.0, 8), (5.0, 16), (6.0, 32)]
    assert course(DynamicAllocation(10), pending, 7, pool=10) == [(2.0, 2), (3.0, 4), (4.0, 8), (5.0, 10)]

    def one_idle(_, workers):
        return {"processed": np.where(np.arange(workers) == 1, 0, 9), "waiting": 0}

    assert course(DynamicAllocation(9), one_idle, 100, workers=4) == [(61.0, 3)]


PACED = {ScalingPolicy.DS2: 30.0, ScalingPolicy.FLINK: 1200.0}


@settings(max_examples=25)
@given(st.sampled_from(sorted(PUBLISHED)), st.data())
def test_bounds_and_times_hold_whatever_comes(name, data):
    times = 0.05
    policy = timed_policy(name, Chosen(pool=12, partitions=48, times=times), None)[0]
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    levels = draw.choice([0, 50, 400, 1000], 30)

    def load(at_s, workers):
        rate = int(levels[int(at_s / 15) % 30])
        return steady(rate, waiting=int(draw.integers(0, 20_000)))(at_s, workers)

    rescales = course(policy, load, 450, pool=12)
    assert all(1 <= workers <= 12 for _, workers in rescales)
    least_s = times * PACED.get(name, 0.0) - 1
    first_s = times * PUBLISHED[name].first_s - 1
    assert not rescales or rescales[0][0] >= first_s
    assert all(later - earlier >= least_s for (earlier, _), (later, _) in itertools.pairwise(rescales))


def test_given_delays_replace_the_own_ones_of_ds2_and_lag():
    given = Patience(1.0, 2.0)
    for name in (ScalingPolicy.DS2, ScalingPolicy.LAG, ScalingPolicy.THRESHOLDS):
        assert timed_policy(name, Chosen(), given)[1] == given
    for name in (ScalingPolicy.FLINK, ScalingPolicy.SPARK):
        assert timed_policy(name, Chosen(), given)[1] is None
    assert timed_policy(ScalingPolicy.THRESHOLDS, Chosen(), None)[1] == Patience()


def test_each_engine_pays_its_own_restart():
    assert migration_of(ScalingPolicy.LAG, None).restart == RESTARTS[RestartName.KAFKA_EAGER]
    flink = migration_of(ScalingPolicy.FLINK, None, 0.5)
    assert flink.how is Migrating.RESTART
    assert flink.restart.start_s == 60.0
    assert migration_of(ScalingPolicy.SPARK, None) == migration_of(ScalingPolicy.THRESHOLDS, None) == Migration()
    given = Migration(Migrating.ONE)
    assert migration_of(ScalingPolicy.DS2, given) == given
    with pytest.raises(UsageError, match="times must be above 0"):
        Chosen(times=0.0)
