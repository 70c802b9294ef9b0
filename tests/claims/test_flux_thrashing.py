"""Flux, Figure 8: the load policy thrashes over a few hot partitions if it collects too briefly.

Self-similar 80/20 over 16,384 groups, hashed to 2,048 partitions. Idle time is known in steps of 10 ms, since a
consumer without input sleeps. The paper's policy at its briefest has half of the static throughput; here it has about
0.8, as the paper leaves open how waiting is measured and how groups lie in partitions.
"""

from functools import cache

import numpy as np
import pytest

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from paper.flux.scenarios import drifting, few_hot, one_loaded, ping_pongs
from paper.flux.tuned import TunedController
from tests.tiers import SOAK

SECONDS = 60.0 if SOAK else 25.0
LOADED = [0, 8] if SOAK else [0]
BRIEF, FIXED = 0.05, (0.05, 0.15, 0.25, 0.5, 1.0, 2.0)
"""Least collection times that the one that is found is held against; all of them for every case."""

CASES = {
    "a loaded worker": lambda seed: one_loaded(25.0, seed),
    "few hot keys": lambda seed: few_hot(0, SECONDS, seed),
    "few hot keys and eight loaded workers": lambda seed: few_hot(8, SECONDS, seed),
    "drifting hot keys": lambda seed: drifting(seconds=30.0, seed=seed),
}


HOT = {0: "few hot keys", 8: "few hot keys and eight loaded workers"}
"""The cases of Figure 8, by how many workers are loaded."""


@cache
def run_of(case, policy, min_collection_s):
    return CASES[case](0).run(controller_of(policy, min_collection_s))


def hot(policy, loaded=0, min_collection_s=BRIEF):
    return run_of(HOT[loaded], policy, min_collection_s)


def throughput(*arguments):
    return hot(*arguments).throughput


def moves_of_the_hottest(policy, loaded):
    scenario = few_hot(loaded, SECONDS)
    hottest = np.argmax(np.bincount(scenario.settings.partition_of, scenario.source.shares))
    return sum(one.move.partition == hottest for one in hot(policy, loaded).moves)


def test_the_paper_s_policy_loses_to_the_static_stage_and_wins_when_it_collects_longer():
    static, briefly = throughput(FluxPolicy.NONE), throughput(FluxPolicy.LOAD)
    long = throughput(FluxPolicy.LOAD, 0, 1.0)
    assert briefly < 0.9 * static
    assert long > briefly
    assert long > 0.95 * static


@pytest.mark.parametrize("policy", [FluxPolicy.LOAD_GUARDED, FluxPolicy.LOAD_SEVERAL])
@pytest.mark.parametrize("loaded", LOADED)
def test_the_guarded_policies_do_not_thrash(loaded, policy):
    """The hottest partition, which the paper's policy moves in most rounds, comes to rest.

    Others that are no bottleneck may go on moving: in 50 ms a worker has some 130 tuples, and knows in five steps how
    long it has waited.
    """
    assert throughput(policy, loaded) > 1.03 * throughput(FluxPolicy.NONE, loaded)
    assert moves_of_the_hottest(policy, loaded) <= 0.05 * moves_of_the_hottest(FluxPolicy.LOAD, loaded)


@pytest.mark.skipif(not SOAK, reason="long; set ADAPT_SOAK=1")
@pytest.mark.parametrize("policy", [FluxPolicy.LOAD_GUARDED, FluxPolicy.LOAD_SEVERAL])
def test_the_guarded_policies_do_not_thrash_with_groups_in_order(policy):
    """The hottest partition then has 35 % of all tuples."""
    static, adapted = (
        few_hot(0, SECONDS, hashed=False).run(controller_of(one, BRIEF)) for one in (FluxPolicy.NONE, policy)
    )
    assert adapted.throughput > 1.05 * static.throughput


@pytest.mark.parametrize("case", CASES if SOAK else [HOT[0]])
def test_the_collection_time_that_is_found_is_near_the_best_fixed_one(case):
    """At least 95 % of its throughput, with the same settings in all cases; and less thrashing than the briefest."""
    found = CASES[case](0).run(TunedController(LoadBalancing()))
    fixed = {time: run_of(case, FluxPolicy.LOAD, time) for time in (FIXED if SOAK else (BRIEF, 1.0, 2.0))}
    assert found.throughput >= 0.95 * max(run.throughput for run in fixed.values())
    assert ping_pongs(found) <= max(1, 0.5 * ping_pongs(fixed[BRIEF]))
