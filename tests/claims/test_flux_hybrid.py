"""Flux, section 6.3: the hybrid policy against the other two, where load comes to some workers and others lose memory.

The paper says that the hybrid outperforms the others, and leaves the experiments to its unpublished long version. Here
it does at the end of every run, with nothing on disk; but with 32 workers only by some 2 % where one of them is loaded
and one pressed, and in between the policy for load alone is ahead for a while, since it evens out load from the first.

The paper leaves open what becomes of a pair whose receiver has no room. If that pair is given up, workers that gave
state away and are idle therefore take the place of those that could help, and the hybrid does little more than the
policy for memory alone; here it passes over them.
"""

import numpy as np
import pytest

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.stage.conditions.faults import ExternalLoad
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.movement.spilling import Memory
from paper.flux.scenarios import FULL_PER_WORKER, Scenario, mean_rate, mixed
from tests.tiers import SOAK

WORKERS = 32 if SOAK else 8
FULL = WORKERS * FULL_PER_WORKER
MIXES = {(1, 1): 150.0, (4, 4): 300.0} if SOAK else {(1, 1): 120.0}
"""Loaded and pressed workers, and how long the stage is watched."""

LAST_S = 20.0


@pytest.fixture(scope="module", params=MIXES)
def runs(request):
    """The runs of a mix by policy."""
    policies = (FluxPolicy.LOAD, FluxPolicy.MEMORY, FluxPolicy.HYBRID, FluxPolicy.HYBRID_SEVERAL)
    seconds = MIXES[request.param]
    return {policy: mixed(*request.param, seconds, workers=WORKERS).run(controller_of(policy)) for policy in policies}


def at_the_end(run):
    """Throughput over the full rate, and seconds in the operator, over the last seconds."""
    last = [one for one in run.intervals if one.start_s >= run.intervals[-1].end_s - LAST_S]
    tuples = sum(one.processed for one in last)
    return mean_rate(run, last[0].start_s) / FULL, sum(one.operator.mean_s * one.processed for one in last) / tuples


def test_the_hybrid_ends_with_a_higher_rate_than_either_of_the_others(runs):
    hybrid, load, memory = (at_the_end(runs[one])[0] for one in (FluxPolicy.HYBRID, FluxPolicy.LOAD, FluxPolicy.MEMORY))
    assert hybrid > load
    assert hybrid > 1.2 * memory


def test_the_hybrid_avoids_the_latencies_of_the_disk(runs):
    """The policy for load sends partitions to workers without room for them."""
    hybrid, load = (at_the_end(runs[one])[1] for one in (FluxPolicy.HYBRID, FluxPolicy.LOAD))
    assert runs[FluxPolicy.HYBRID].intervals[-1].on_disk == 0
    assert hybrid <= 60e-6
    assert load > 1.3 * hybrid


def test_the_hybrid_does_more_than_the_policy_for_memory_from_the_first(runs):
    assert mean_rate(runs[FluxPolicy.HYBRID], 5) > mean_rate(runs[FluxPolicy.MEMORY], 5)


def test_several_moves_a_round_do_more_from_the_first_and_at_the_end(runs):
    hybrid, several = runs[FluxPolicy.HYBRID], runs[FluxPolicy.HYBRID_SEVERAL]
    assert mean_rate(several, 5) > 1.1 * mean_rate(hybrid, 5)
    assert at_the_end(several)[0] >= at_the_end(hybrid)[0]
    assert several.intervals[-1].on_disk == 0


@pytest.mark.parametrize("policy", [FluxPolicy.HYBRID, FluxPolicy.HYBRID_SEVERAL])
def test_a_partition_that_fits_nowhere_keeps_no_other_from_moving(policy):
    """One of 4.8 MB among those of 0.4 MB, and 11 MB a worker: no other worker has 4.8 MB free, but all have 0.4."""
    sizes = np.full(4 * 16, 5_000)
    sizes[16] = 60_000
    load = (ExternalLoad(0, 0.0, np.inf),)
    stage = StageSettings(4, even_owners(4, 16), even_groups(4096, 64), state_tuples=sizes, disturbances=load)
    run = Scenario(stage, 5.0, memory=Memory(11e6)).run(controller_of(policy))
    assert mean_rate(run, 4) > 0.75 * 4 * FULL_PER_WORKER
    assert max(one.on_disk for one in run.intervals) == 0
