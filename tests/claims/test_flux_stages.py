"""Flux over stages, hot partitions and transient skew."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.stage.conditions.arrivals import Drawn, Made
from adapt.core.stage.conditions.faults import ExternalLoad
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups, even_owners
from adapt.core.stage.dag.settings import DagSettings, Edge
from adapt.core.stage.dag.simulation import DagControl, simulate_dag
from paper.flux.scenarios import transient_skew, unloaded
from tests.tiers import SOAK, soak

DAGS = range(10)
STEADY_S, LAST_S = 30.0, 60.0


def random_dag(number):
    """Three to five stages with 16 partitions on each of four workers, one of which keeps 43 % of its CPU from 1 s."""
    chance = np.random.default_rng(number)
    stages, edges, inputs = [], [], []
    for target in range(int(chance.integers(3, 6))):
        costs = Costs(service_s=float(chance.choice([20e-6, 45e-6, 90e-6])))
        loaded = (ExternalLoad(0, 1.0, np.inf),)
        groups = even_groups(64, 64)
        stages.append(
            StageSettings(4, even_owners(4, 16), groups, costs=costs, disturbances=loaded, seed=number + target)
        )
        shares = chance.permutation(np.arange(1, 65) ** -float(chance.choice([0.0, 0.3])))
        inputs.append(Made(shares) if target else Drawn(shares))
        for source in chance.choice(target, min(target, int(chance.integers(1, 3))), replace=False) if target else ():
            edges.append(Edge(int(source), target, float(chance.choice([0.3, 1.0, 2.0]))))
    return DagSettings(tuple(stages), tuple(edges)), inputs


def share_of_bound(run):
    """CPU seconds of processed tuples over those of all workers once settled, by the mean costs of the settings."""
    work_s = 0.0
    for of, stage in zip(run.settings.stages, run.stages, strict=True):
        processed = sum(one.processed for one in stage.intervals if one.start_s >= STEADY_S - 1e-9)
        work_s += processed * (of.costs.service_s + of.costs.produce_s)
    capacity = run.settings.capacity(run.faults.crashes)
    return work_s / (capacity.by(run.stages[0].intervals[-1].end_s) - capacity.by(STEADY_S))


@cache
def measured(number, joint):
    """Moves a minute and share of the bound once settled."""
    of, inputs = random_dag(number)

    made = [controller_of(FluxPolicy.LOAD) for _ in of.stages]
    settled = simulate_dag(of, inputs, LAST_S, DagControl(made[0] if joint else None, () if joint else made))
    return settled.moves_a_minute(STEADY_S), share_of_bound(settled)


@soak
def test_a_joint_controller_settles_where_one_per_stage_does_not():
    joint, each = (np.array([measured(number, joint) for number in DAGS]) for joint in (True, False))
    print("DAG  stages  joint: moves/min, bound   each: likewise")
    for number in DAGS:
        print(number, len(random_dag(number)[0].stages), *np.round([*joint[number], *each[number]], 3))
    assert joint[:, 1].max() <= 1.01
    assert joint[:, 1].min() >= 0.85
    assert joint[:, 0].mean() <= 5
    assert each[:, 0].min() >= 100


SEEDS = range(5) if SOAK else range(1)
SETTLED_S, END_S = (60, 120) if SOAK else (30, 75)
SELECTIVITIES = (0.3, 1.0, 2.0) if SOAK else (0.3,)
JOINT, EACH, EACH_HASTY, SEVERAL = (
    (True, FluxPolicy.LOAD, 0.15),
    (False, FluxPolicy.LOAD, 0.5),
    (False, FluxPolicy.LOAD, 0.15),
    (True, FluxPolicy.LOAD_SEVERAL, 0.15),
)
"""Whether there is one joint controller, of which policy, and the least time that they collect."""


def loaded(selectivity, seed):
    """Four workers with 32 partitions of each stage, one of which keeps 43 % of its CPU from 1 s on."""
    first = StageSettings(
        4, even_owners(4, 32), even_groups(4096, 128), disturbances=(ExternalLoad(0, 1.0, np.inf),), seed=seed
    )
    return DagSettings((first, replace(first, seed=seed + 1000)), (Edge(0, 1, selectivity),))


@cache
def reached(selectivity, seed, controllers):
    """Share of the bound, and moves a minute, both once settled."""
    of = loaded(selectivity, seed)
    joint, policy, collection_s = controllers
    made = [controller_of(policy, collection_s) for _ in range(2)]
    control = DagControl(made[0]) if joint else DagControl(each=made)
    run = simulate_dag(of, (Drawn(), Made()), END_S, control)
    return run.rate(SETTLED_S) / of.bound(END_S), run.moves_a_minute(SETTLED_S)


def moves_a_minute(controllers):
    """Once settled, on average over all runs."""
    return np.mean([reached(selectivity, seed, controllers)[1] for selectivity in SELECTIVITIES for seed in SEEDS])


@pytest.mark.parametrize("selectivity", SELECTIVITIES)
@pytest.mark.parametrize("controllers", [JOINT, EACH, EACH_HASTY, SEVERAL])
def test_two_stages_reach_85_percent_of_what_all_cpu_together_could_do(selectivity, controllers):
    for seed in SEEDS:
        assert 0.85 <= reached(selectivity, seed, controllers)[0] <= 1.0


@pytest.mark.parametrize("controllers", [JOINT, EACH, SEVERAL])
def test_moves_fall_to_none_under_a_load_that_does_not_change(controllers):
    assert moves_a_minute(controllers) <= 0.5


def test_two_controllers_that_collect_for_150_ms_do_not_come_to_rest():
    assert moves_a_minute(EACH_HASTY) > 2


SPACES = (256, 512, 1024, 2048, 4096) if SOAK else (256,)


@pytest.fixture(scope="module")
def full():
    return unloaded(2).run().throughput


def visited(router, space=0):
    """Tuples a second with so much space for each producer beside the two packets of a connection."""
    return transient_skew(router, space).run().throughput


def test_the_unloaded_stage_does_about_7e5_tuples_a_second(full):
    assert 6.9e5 <= full <= 7.1e5


def test_without_a_buffer_one_loaded_worker_at_a_time_halves_the_stage(full):
    assert 0.45 <= visited(Router.EXCHANGE) / full <= 0.55


def test_with_2048_tuples_the_stage_is_nearly_unloaded(full):
    assert visited(Router.FLUX, 2048) >= 0.97 * full


@pytest.mark.parametrize("space", SPACES)
def test_flux_beats_exchange_with_the_same_space(space):
    assert visited(Router.FLUX, space) > visited(Router.EXCHANGE, space)
