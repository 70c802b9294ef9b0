"""Runs of Flux as the page keeps them, with bounds and policies that know more."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.movement.controller import Move, Round
from adapt.core.stage.movement.spilling import Memory, MemoryChange
from adapt.core.stage.simulate import Actors, simulate
from paper.flux.clairvoyant import Demand, OptimumController, ahead_of, assign, bound_s
from paper.flux.figures.recovery import left, settled_after_s
from paper.flux.figures.spilling import in_memory_after_s, resumes_after_s
from paper.flux.measured import Ran, Seen, StageRun
from paper.flux.scenarios import mean_rate, several_loaded
from paper.flux.tuned import LEAST_S, MOST_S, TunedController
from tests.core.flux.observations import observed


def seen(rates, lasting=1.0, **changes):
    """Intervals of the same length."""
    fields = {"operator_s": [0.0] * len(rates), "on_disk": [0] * len(rates), "held": [64] * len(rates), **changes}
    return [
        Seen(at * lasting, (at + 1) * lasting, round(rate * lasting), *kept)
        for at, (rate, *kept) in enumerate(zip(rates, *fields.values(), strict=True))
    ]


def test_a_run_is_kept_as_it_was():
    run = StageRun("several_loaded", (("count", 1), ("seconds", 0.5), ("workers", 2)), FluxPolicy.LOAD, 0.05, 3, 0.125)
    kept = Ran.from_data(json.loads(json.dumps(run.measure([]))))
    scenario = several_loaded(1, 0.5, 3, 2)
    told = scenario.run(run.controller(scenario), 0.125)
    assert [one.processed for one in kept.intervals] == [one.processed for one in told.intervals]
    assert kept.moves == len(told.moves) > 0
    assert kept.transfer_s > 0
    assert mean_rate(kept) == pytest.approx(told.throughput)
    loaded = scenario.settings.disturbances[0].worker
    assert [one.held for one in kept.intervals] == [one.partitions[loaded] for one in told.intervals]
    assert kept.latency_us(0.0) == pytest.approx(
        1e6 * sum(one.operator.sum_s for one in told.intervals) / told.census.processed
    )


def test_what_a_crash_took_is_kept_with_the_run():
    given = (("dies", True), ("seconds", 5.5), ("workers", 4), ("standby", False))
    kept = Ran.from_data(json.loads(json.dumps(StageRun("crashed", given, FluxPolicy.NONE, 0.0, 0, 0.5).measure([]))))
    assert kept.crash is not None
    assert kept.crash.lost_state_bytes == 64 * 800_000
    assert kept.crash.lost_tuples > 0
    assert kept.crash.protected_s is None


def test_a_stage_has_settled_from_when_it_stays_within_5_percent():
    held = [64, 64, 60, 50, 40, 33, 32, 32, 32, 32, 32]
    run = Ran(seen([100, 40, 40, 100, 90, 100, 96, 100, 100, 100, 100], held=held), [1.5, 2.5], 0.0, 0)
    assert settled_after_s(run) == pytest.approx(5.0 - 1.5)
    assert left(run) == 32


def test_a_stage_that_stood_still_resumes():
    rates = [100, 100, 100, 100, 100, 50, 0, 0, 30, 5, 30, 100]
    on_disk = [0, 0, 0, 0, 0, 3, 9, 9, 4, 1, 0, 0]
    run = Ran(seen(rates, on_disk=on_disk), [], 0.0, 0)
    assert resumes_after_s(run, 100) == 3.0
    assert in_memory_after_s(run) == 5.0
    assert resumes_after_s(Ran(seen([100.0] * 9), [], 0.0, 0), 100) is None
    assert in_memory_after_s(Ran(seen([1.0] * 9, on_disk=[1] * 9), [], 0.0, 0)) is None


class Script:
    """Asks for the moves it was given, round after round."""

    def __init__(self, *rounds):
        self._rounds = iter(rounds)

    def plan(self, _):
        return next(self._rounds)


OWNERS, TUPLES = [0, 0, 1], [30, 20, 10]
BUSY_DONOR = observed([0.0, 0.9], OWNERS, TUPLES)
BUSY_RECEIVER = observed([0.9, 0.0], [0, 1, 1], TUPLES)


def test_a_receiver_that_becomes_the_bottleneck_doubles_the_time():
    controller = TunedController(Script((Move(1, 0, 1),), ()), 1.0)
    controller.plan(BUSY_DONOR)
    before = controller.min_collection_s
    controller.plan(BUSY_RECEIVER)
    assert controller.min_collection_s == 2 * before


def test_a_receiver_as_busy_as_predicted_lowers_it():
    controller = TunedController(Script((Move(1, 0, 1),), ()), 1.0)
    controller.plan(BUSY_DONOR)
    before = controller.min_collection_s
    controller.plan(observed([0.5, 0.6], [0, 1, 1], TUPLES))
    assert controller.min_collection_s == pytest.approx(0.8 * before)


def test_a_partition_that_comes_back_doubles_it():
    controller = TunedController(Script((Move(1, 0, 1),), (), (Move(1, 1, 0),)), 1.0)
    quiet = observed([0.5, 0.5], OWNERS, TUPLES)
    controller.plan(quiet)
    controller.plan(quiet)
    before = controller.min_collection_s
    controller.plan(quiet)
    assert controller.min_collection_s == 2 * before


def test_it_stays_between_its_ends():
    there_and_back = [(Move(1, 0, 1),), (Move(1, 1, 0),)] * 20
    controller = TunedController(Script(*there_and_back, *[()] * 60), 0.15)
    for _ in range(40):
        controller.plan(BUSY_DONOR)
    assert controller.min_collection_s == MOST_S
    for _ in range(60):
        controller.plan(BUSY_DONOR)
    assert controller.min_collection_s == LEAST_S


def test_rounds_are_paced_as_in_the_paper():
    controller = TunedController(LoadBalancing(), 0.1)
    assert controller.collection_s(None) == 0.1
    assert controller.collection_s(Round(0.2, (Move(0, 0, 1),), 0.7)) == 0.7
    assert controller.collection_s(Round(0.8, (), 0.0)) == 0.4


def stage(**changes):
    return StageSettings(4, even_owners(4, 8), even_groups(64, 32), state_tuples=100, **changes)


def test_load_is_known_before_it_comes():
    of = stage(disturbances=(ExternalLoad(1, 2.0, 3.0), SlowDown(2, 0.5, 1.5, 0.0)))
    ahead = ahead_of(of, Drawn())
    np.testing.assert_allclose(ahead.demand(0.0, 1.0).speeds, [1, 1, 0.5, 1])
    np.testing.assert_allclose(ahead.demand(1.5, 2.5).speeds, [1, (1 + 3 / 7) / 2, 1, 1])


def test_memory_is_known_before_it_goes():
    ahead = ahead_of(stage(), Drawn(), Memory(1e6, (MemoryChange(3, 2.0, 5e5), MemoryChange(3, 4.0, 8e5))))
    np.testing.assert_array_equal(ahead.demand(0.0, 1.0).room, [1e6] * 4)
    np.testing.assert_array_equal(ahead.demand(1.0, 2.0).room, [1e6] * 3 + [5e5])
    np.testing.assert_array_equal(ahead.demand(3.5, 4.5).room, [1e6] * 3 + [8e5])


def test_a_loaded_stage_comes_within_its_bound():
    of = stage(disturbances=(ExternalLoad(0, 0.2, 9.0),), buffer_tuples=64)
    ahead = ahead_of(of, Drawn())
    controller = OptimumController(ahead, 0.02)
    run = simulate(of, Drawn(), 2.0, Actors(controller), interval_s=0.5)
    assert run.moves
    assert 0.95 <= run.intervals[-1].throughput / (controller.found[-1].slowest_s ** -1) <= 1.02
    assert run.intervals[-1].throughput <= 1.02 * ahead.bound_rate(1.5, 2.0)


def demand(work, speeds, fixed_s=0.0, sizes=None, room=None):
    work, speeds = np.array(work, float), np.array(speeds, float)
    return Demand(
        work,
        fixed_s,
        speeds,
        np.ones(len(work)) if sizes is None else np.array(sizes, float),
        np.full(len(speeds), np.inf) if room is None else np.array(room, float),
    )


@st.composite
def demands(draw, partitions=6, workers=3):
    work = draw(st.lists(st.integers(0, 20), min_size=1, max_size=partitions))
    speeds = draw(st.lists(st.sampled_from([0.25, 3 / 7, 1.0]), min_size=2, max_size=workers))
    return demand(work, speeds, draw(st.sampled_from([0.0, 0.5])))


def least_by_trying_all(given):
    workers = range(len(given.speeds))
    return min(given.slowest_s(np.array(one)) for one in product(workers, repeat=len(given.work_s)))


def least_by_milp(given):
    """Minimize t with each partition on one worker, and work and what is fixed within speed x t at each."""
    partitions, workers = len(given.work_s), len(given.speeds)
    once = np.hstack([np.kron(np.eye(partitions), np.ones(workers)), np.zeros((partitions, 1))])
    within = np.hstack([np.kron(given.work_s, np.eye(workers)), -given.speeds[:, None]])
    solved = milp(
        np.eye(partitions * workers + 1)[-1],
        constraints=[LinearConstraint(once, 1, 1), LinearConstraint(within, -np.inf, -given.fixed_s)],
        integrality=np.append(np.ones(partitions * workers), 0),
        options={"mip_rel_gap": 1e-6},
    )
    return solved.fun


@given(demands(), st.data())
def test_the_bound_holds_for_every_assignment_and_what_is_found_is_one(given, data):
    owners = data.draw(st.lists(st.integers(0, len(given.speeds) - 1), min_size=1, max_size=6).map(np.array))
    owners = np.resize(owners, len(given.work_s)).astype(np.int32)
    best, found = least_by_trying_all(given), assign(owners, given)
    assert bound_s(given) == found.bound_s <= best * (1 + 1e-9)
    assert found.slowest_s == given.slowest_s(found.owners) <= given.slowest_s(owners) * (1 + 1e-9)
    assert 0 <= found.owners.min() <= found.owners.max() < len(given.speeds)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_found_is_near_the_optimum(seed):
    chance = np.random.default_rng(seed)
    given = demand(chance.pareto(1.5, 12) + 0.1, chance.choice([3 / 7, 1.0], 3), 0.1)
    found = assign(chance.integers(0, 3, 12).astype(np.int32), given)
    best = least_by_milp(given)
    assert bound_s(given) <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= found.slowest_s <= 1.05 * best


def test_state_goes_to_where_there_is_room():
    owners = np.zeros(6, np.int32)
    found = assign(owners, demand(np.ones(6), [1, 1, 1], sizes=np.full(6, 10), room=[20, 40, 10]))
    assert (np.bincount(found.owners, minlength=3) <= [2, 4, 1]).all()
