from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import HybridBalancing, LoadBalancing, PacedController
from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.conditions.faults import Crash, ExternalLoad, FaultSchedule, SlowDown
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Network, StageSettings
from adapt.core.stage.engine.queues import Job
from adapt.core.stage.movement.controller import STEPS, Move
from adapt.core.stage.movement.spilling import Memory, MemoryChange
from adapt.core.stage.simulate import Actors, assemble, simulate
from tests.core.stage.engine.test_running_stage import in_order, serial_answers, small
from tests.core.stage.movement.test_protocol import AnyMoves
from tests.core.stage.stages import stream
from tests.tiers import SOAK

ROWS = 600
SPAN_S = 0.03
SCHEDULES = 200 if SOAK else 60
LONGEST_S = 2.0
"""Every stage is through long before."""

CONTROLLERS = (
    lambda _: None,
    lambda _: PacedController(LoadBalancing(), 1e-3),
    lambda _: PacedController(HybridBalancing(), 1e-3),
    AnyMoves,
)


def a_stage(chance):
    """Three to six workers, some of which are slow, so that policies have something to do."""
    workers = int(chance.integers(3, 7))
    partitions = int(chance.integers(1, 20))
    slow = [
        ExternalLoad(worker, 0.0, np.inf) if chance.random() < 0.5 else SlowDown(worker, 0.005, 0.02, 0.2)
        for worker in np.flatnonzero(chance.random(workers) < 0.3).tolist()
    ]
    return StageSettings(
        workers,
        chance.integers(0, workers, partitions).astype(np.int32),
        chance.integers(0, partitions, int(chance.integers(1, 40))).astype(np.int32),
        router=Router.EXCHANGE if chance.random() < 0.2 else Router.FLUX,
        buffer_tuples=int(chance.integers(1, 60)),
        network=Network(float(chance.choice([0.0, 70e-6, 3e-4])), int(chance.integers(12, 25))),
        state_tuples=chance.integers(0, 400, partitions),
        window=int(chance.integers(1, 5)),
        disturbances=tuple(slow),
        seed=int(chance.integers(2**20)),
    )


def undisturbed_workers(of):
    return sorted(set(range(of.workers)) - {one.worker for one in of.disturbances})


def all_once(run):
    """Whether the run is that of a serial run over all rows, which processes each once."""
    assert run.census.whole
    assert run.census.lost == 0
    assert run.disagreed == 0
    assert [one.lost_state_bytes for one in run.crashes] == [0] * len(run.crashes)
    assert sorted(run.journal["number"].tolist()) == list(range(ROWS))
    assert in_order(run.journal)
    return True


def a_run(of, seed, crashes, detection_s):
    return simulate(
        of,
        stream(of, ROWS, SPAN_S, seed),
        LONGEST_S,
        Actors(
            CONTROLLERS[seed % len(CONTROLLERS)](seed), faults=FaultSchedule(tuple(crashes), detection_s), standby=True
        ),
        interval_s=0.02,
        journal=2 * ROWS,
    )


def test_no_tuple_is_lost_or_repeated_whenever_workers_crash(promise):
    """Any worker, at any time. It may come back and die again: also before all is copied, which may be to it.

    Or another dies after every partition has its twin again.
    """
    promoted = copied = 0
    for seed in range(SCHEDULES):
        chance = np.random.default_rng([7, seed])
        of = a_stage(chance)
        workers = undisturbed_workers(of) or [0]
        of = of if workers != [0] else replace(of, disturbances=())
        worker = int(chance.choice(workers))
        at_s = float(chance.uniform(0, SPAN_S))
        back_s = at_s + float(chance.uniform(1e-5, 0.02))
        detection_s = float(chance.uniform(1e-5, 5e-3))
        run = partial(a_run, of, seed, detection_s=detection_s)
        match seed // 4 % 3:
            case 0:
                crashes = [Crash(worker, at_s)]
            case 1:
                again_s = back_s + float(chance.uniform(0, 0.02))
                crashes = [Crash(worker, at_s, back_s), Crash(worker, again_s, again_s + 0.01)]
            case _:
                crashes = [Crash(worker, at_s, back_s)]
                protected_s = run(crashes=crashes).crashes[0].protected_s
                if protected_s is not None:
                    other = int(chance.choice(workers))
                    crashes.append(Crash(other, max(protected_s, back_s) + float(chance.uniform(0, 0.01))))
        done = run(crashes=crashes)
        assert all_once(done), (seed, crashes)
        assert done.journal["answer"].tolist() == serial_answers(done.journal, of.window), (seed, crashes)
        promoted += sum(one.promoted for one in done.crashes)
        copied += sum(one.protected_s is not None for one in done.crashes)
    assert promoted > SCHEDULES
    assert copied > SCHEDULES / 2
    promise("stage-order").checked(SCHEDULES)


def test_when_both_workers_of_a_pair_die_the_loss_is_said_and_no_tuple_is_lost():
    of = small(3, 4, window=3)
    rows = stream(of, ROWS, SPAN_S, 1)
    faults = FaultSchedule((Crash(0, 0.01), Crash(1, 0.0101)), 1e-3)
    run = simulate(of, rows, None, Actors(faults=faults, standby=True), journal=2 * ROWS)
    assert run.census.whole
    assert run.census.lost == 0
    assert sorted(run.journal["number"].tolist()) == list(range(ROWS))
    (summary,) = run.summary().rows
    said = dict(zip([column.name for column in run.summary().columns], summary, strict=True))
    assert said["lost"] == 0
    assert said["lost_state"] == 4 * 800_000  # of the four whose twins were on the other worker that died
    assert said["lost_groups"] == 4


@pytest.mark.parametrize("busy_s", [0.0, 0.02])
def test_a_promotion_sends_no_state_and_both_copies_go_on_agreeing(busy_s):
    """Also if the replica is busy, and reads the order to expect a move after its donor has done its part."""
    of = small(3, 4, window=3)
    stage = assemble(of, stream(of, ROWS, 0.01, 1) if busy_s else Drawn(), Actors(standby=True), journal=10**4)
    stage.stage.run(0.02)
    twin = int(stage.stage.arrays["pair"]["twin"][0])
    stage.stage.do(twin, Job(0.0, busy_s, lambda: None))
    stage.movement.start([Move(0, 0, twin)], lambda: None)
    stage.stage.run(0.1)
    (moved,) = stage.movement.log
    assert moved.state_bytes == 0
    assert stage.movement.network.bits_sent == 0
    assert list(moved.times_s) == list(STEPS)
    assert stage.stage.arrays["partition"]["owner"][0] == twin
    assert stage.stage.arrays["pair"]["twin"][0] == 0
    assert stage.stage.arrays.world["disagreed"] == 0
    journal = stage.stage.arrays["entry"][: int(stage.stage.arrays.world["journalled"])]
    assert journal["answer"].tolist() == serial_answers(journal, of.window)


def test_replicas_yield_to_partitions_that_no_longer_fit():
    """Two of three workers lose memory: their replicas go, and no partition is written."""
    of = small(3, 4, window=3)
    changes = tuple(MemoryChange(worker, 0.02, 4 * 800_000) for worker in (0, 1))
    one = assemble(of, Drawn(), Actors(memory=Memory(9 * 800_000, changes), standby=True))
    one.stage.run(0.01)
    assert [one.spilling.used(worker) for worker in range(3)] == [8 * 800_000] * 3
    one.stage.run(0.1)
    assert one.standby.twins_by_worker().tolist() == [0, 0, 4]
    assert one.spilling.written == 0


def test_what_cannot_be_protected_is_refused():
    with pytest.raises(UsageError, match="router river"):
        simulate(small(router=Router.RIVER), Drawn(), 1.0, Actors(standby=True))
