"""Flux, section 5.4, Figures 6 and 7: moving partitions off loaded workers, as the paper does it and past it.

32 workers with 64 partitions of 800 KB each; the external process takes 57 % of a worker's CPU. The paper's least
collection time is damaged in its text: 150 or 50 ms. Here it is 50 ms, with which its policy is at its best.
"""

from functools import cache

import numpy as np
import pytest

from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from paper.flux.clairvoyant import OptimumController, ahead_of
from paper.flux.scenarios import (
    COUNTS,
    FULL,
    KEPT,
    LOADED_WORKER,
    WORKERS,
    capacity_bound,
    felt_s,
    mean_rate,
    one_loaded,
    ping_pongs,
    seconds_below,
    several_loaded,
)
from tests.tiers import SOAK

SEEDS = range(5) if SOAK else range(1)
SECONDS = 25.0 if SOAK else 18.0
LOADED = [count for count in COUNTS if 0 < count < WORKERS] if SOAK else [4]
STATIC = [count for count in COUNTS if count > 0] if SOAK else [8]
FINEST_S = 0.05


@cache
def faithful(seed):
    return one_loaded(25.0, seed).run(controller_of(FluxPolicy.LOAD, FINEST_S), 0.25)


@cache
def several(seed):
    return one_loaded(25.0 if SOAK else 14.0, seed).run(controller_of(FluxPolicy.LOAD_SEVERAL), 0.25)


@pytest.mark.parametrize("seed", SEEDS)
def test_figure_6_the_stage_recovers_after_about_32_partitions_have_left_the_loaded_worker(seed):
    run = faithful(seed)
    felt = felt_s(run)
    assert 8 <= felt <= 10.5  # the buffers give four to five seconds of slack
    left = {one.end_s: 64 - one.partitions[LOADED_WORKER] for one in run.intervals}
    assert left[felt + 14] >= 28
    assert 29 <= left[25] <= 35
    assert mean_rate(run, felt + 14) >= 0.85 * FULL


def test_figure_6_several_moves_recover_twice_as_fast():
    """Seconds below 85 % of the full rate, after the load on one worker is felt; means over seeds."""
    slow, quick = (
        np.array([seconds_below(run(seed), 0.85, felt_s(run(seed))) for seed in SEEDS]) for run in (faithful, several)
    )
    assert (quick < slow).all()
    assert quick.mean() <= slow.mean() / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_figure_6_several_moves_end_near_capacity(seed):
    run = several(seed)
    assert mean_rate(run, run.intervals[-1].end_s - 2) >= 0.96 * capacity_bound(1)


@pytest.mark.parametrize("count", STATIC)
def test_figure_7_the_static_stage_falls_to_what_one_loaded_worker_can_do(count):
    run = several_loaded(count, 9).run()
    assert mean_rate(run, 8) / FULL == pytest.approx(KEPT, abs=0.02)


@pytest.mark.parametrize("policy", [FluxPolicy.LOAD, FluxPolicy.LOAD_SEVERAL])
@pytest.mark.parametrize("count", [0, WORKERS])
def test_figure_7_nothing_moves_where_all_workers_are_alike(policy, count):
    for seed in SEEDS:
        assert several_loaded(count, 25 if SOAK else 2, seed).run(controller_of(policy, FINEST_S)).moves == []


@pytest.mark.parametrize(
    ("policy", "min_collection_s", "least"),
    [(FluxPolicy.LOAD, FINEST_S, 0.88), (FluxPolicy.LOAD_SEVERAL, 0.15, 0.96)],
)
@pytest.mark.parametrize("count", LOADED)
def test_figure_7_the_stage_degrades_with_the_number_of_loaded_workers(policy, min_collection_s, least, count):
    """Within 12 % of the bound, all the CPU that is left, shared evenly; several moves, ever finer ones, within 4 %."""
    runs = [several_loaded(count, SECONDS, seed).run(controller_of(policy, min_collection_s)) for seed in SEEDS]
    reached = np.mean([mean_rate(run, SECONDS - 5) for run in runs])
    assert least * capacity_bound(count) <= reached <= 1.01 * capacity_bound(count)
    if policy is FluxPolicy.LOAD_SEVERAL:
        assert sum(map(ping_pongs, runs)) <= 2 * len(runs)


@pytest.mark.parametrize("count", LOADED)
def test_the_optimum_is_nearer_to_the_bound_than_any_policy(count):
    scenario = several_loaded(count, SECONDS if SOAK else 6)
    ahead = ahead_of(scenario.settings, scenario.source)
    run = scenario.run(OptimumController(ahead, MIN_COLLECTION_S))
    assert ahead.bound_rate(0, scenario.seconds) == pytest.approx(capacity_bound(count))
    assert 0.97 * capacity_bound(count) <= mean_rate(run, scenario.seconds - 2) <= 1.01 * capacity_bound(count)
