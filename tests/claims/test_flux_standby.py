"""Flux with process pairs, and policies that do not thrash."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from adapt.core.flux.policies.load_policy import LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.conditions.faults import Crash, FaultSchedule
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.movement.controller import Controller, Move
from adapt.core.stage.simulate import Actors, assemble, simulate
from paper.flux.scenarios import LOADED_WORKER, drifting, few_hot, one_loaded, ping_pongs
from paper.flux.tuned import TunedController
from tests.tiers import SOAK, soak

WORKERS = 32
STAGE = StageSettings(WORKERS, even_owners(WORKERS, 64), even_groups(16384, WORKERS * 64))
FULL = WORKERS / 45.5e-6
DIES = FaultSchedule((Crash(3, 1.0),), 0.5)


@pytest.fixture(scope="module")
def alone():
    return simulate(STAGE, Drawn(), 3.0, Actors(faults=DIES), interval_s=0.25)


@pytest.fixture(scope="module")
def paired():
    return simulate(STAGE, Drawn(), 4.0, Actors(faults=DIES, standby=True), interval_s=0.25)


def rate(run, from_s, to_s):
    return float(np.mean([one.throughput for one in run.intervals if from_s <= one.start_s < to_s])) / FULL


def test_standby_takes_half_of_the_capacity(alone, paired):
    assert rate(alone, 0.25, 1.0) == pytest.approx(1.0, abs=0.02)
    assert rate(paired, 0.25, 1.0) / rate(alone, 0.25, 1.0) == pytest.approx(0.5, abs=0.02)
    assert paired.mirrored >= 0.9 * paired.census.processed


def test_without_standby_the_partitions_of_the_worker_are_lost_and_this_is_said(alone):
    (crash,) = alone.crashes
    assert crash.lost_state_bytes == 64 * 800_000
    assert crash.lost_groups == 64 * 8
    assert 0 < crash.lost_tuples <= WORKERS * 24 + 1
    assert alone.census.whole
    assert rate(alone, 1.75, 3.0) >= 0.9 * 31 / 32


def test_with_standby_nothing_is_lost_and_the_full_rate_is_back_soon(paired):
    """As soon as the twins have taken over; all 128 copies that died are made again in little more than is needed."""
    (crash,) = paired.crashes
    assert crash.promoted == crash.partitions == 64
    assert crash.lost_state_bytes == paired.census.lost == 0
    assert crash.takeover_s == pytest.approx(0.5)
    assert crash.full_rate_s <= 1.0
    assert 128 * 800_000 * 8 / 500e6 <= crash.protected_s - crash.taken_over_s <= 2.5
    assert rate(paired, 3.5, 4.0) == pytest.approx(31 / 64, abs=0.01)


def moving_out(promotes):
    """Bytes sent, and seconds until all 64 partitions have left the loaded worker of Figure 6."""
    scenario = one_loaded(workers=16)
    one = assemble(scenario.settings, scenario.source, Actors(standby=True))
    one.stage.run(6.0)
    twins, ended = one.stage.arrays["pair"]["twin"], []
    leaving = np.flatnonzero(scenario.settings.owners == LOADED_WORKER).tolist()
    shift = 0 if promotes else 1
    others = [worker for worker in range(16) if worker != LOADED_WORKER]
    to = [others[(others.index(int(twins[partition])) + shift) % 15] for partition in leaving]
    moves = [Move(*each) for each in zip(leaving, [LOADED_WORKER] * 64, to, strict=True)]
    one.movement.start(moves, lambda: ended.append(one.stage.now_s))
    while not ended:
        one.stage.run(one.stage.now_s + 0.5)
    return one.movement.network.bits_sent / 8, ended[0] - 6.0


@soak
def test_a_promotion_sends_nothing_and_is_faster_than_sending_state():
    (sent, sent_s), (promoted, promoted_s) = moving_out(False), moving_out(True)
    assert promoted == 0
    assert sent == pytest.approx(64 * 800_000)
    assert promoted_s == pytest.approx(2.6, abs=0.1)
    assert sent_s == pytest.approx(4.2, abs=0.2)


@dataclass
class Promoting:
    """Instead of the chosen partition, moves one within a fifth of its load whose replica is at the receiver."""

    inner: Controller
    pairs: NDArray[np.void] | None = None

    def collection_s(self, previous):
        return self.inner.collection_s(previous)

    def plan(self, observed):
        load, found = observed.processed, {}
        for move in self.inner.plan(observed):
            there = np.flatnonzero((observed.owners == move.donor) & (self.pairs["twin"] == move.receiver))
            off = {one: abs(load[one] - load[move.partition]) for one in there.tolist() if one not in found}
            alike = [one for one in off if off[one] <= 0.2 * load[move.partition]]
            partition = min(alike, key=lambda one: (off[one], one), default=move.partition)
            found.setdefault(partition, Move(partition, move.donor, move.receiver))
        return list(found.values())


@soak
@pytest.mark.parametrize("seed", range(3))
def test_promotions_send_less_but_do_not_relieve_the_loaded_worker(seed):
    below, sent = {}, {}
    for promotes in (False, True):
        scenario = one_loaded(seed=seed, workers=16)
        controller = controller_of(FluxPolicy.LOAD_SEVERAL)
        if promotes:
            controller = Promoting(controller)
        one = assemble(scenario.settings, scenario.source, Actors(controller, standby=True))
        if promotes:
            controller.pairs = one.stage.arrays["pair"]
        done = []
        for end_s in np.arange(1, 101) / 4:
            one.stage.run(end_s)
            done.append(int(one.stage.arrays.world["processed"]))
        rates = np.diff([0, *done])
        below[promotes] = 0.25 * np.count_nonzero(rates[20:] < 0.9 * rates[8:20].mean())
        sent[promotes] = one.movement.network.bits_sent / 8e6
    assert 47 <= round(sent[False]) <= 58
    assert 6 <= round(sent[True]) <= 19
    assert 6.25 <= below[False] <= 6.75
    assert 13.0 <= below[True] <= 15.25


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
