from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Costs, FixedCosts, Network, StageSettings
from adapt.core.stage.engine.queues import Job
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import STEPS, Move
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.simulate import Actors, simulate
from tests.core.stage.engine.test_running_stage import BY_CONTENT, small
from tests.core.stage.stages import stages


class AnyMoves:
    """A controller that asks for any moves at all, several of one donor too."""

    def __init__(self, seed):
        self._chance = np.random.default_rng(seed)
        self.owners = []

    def collection_s(self, previous):
        return float(self._chance.uniform(1e-4, 3e-3))

    def plan(self, observed):
        self.owners.append(observed.owners)
        chosen = np.flatnonzero(self._chance.random(len(observed.owners)) < 0.4)
        receivers = self._chance.integers(0, observed.workers, len(chosen))
        return [
            Move(int(partition), int(observed.owners[partition]), int(receiver))
            for partition, receiver in zip(chosen, receivers, strict=True)
            if receiver != observed.owners[partition]
        ]


@given(stages(BY_CONTENT), st.integers(0, 2**20))
def test_a_partition_is_processed_by_its_owner_alone(of, seed):
    """From when it is restarted at one worker until it is taken out there."""
    run = simulate(of, Drawn(), 0.04, Actors(AnyMoves(seed)), interval_s=0.04, journal=10**4)
    for entry in run.journal:
        owner = of.owners[entry["partition"]]
        for moved in run.moves:
            if moved.move.partition == entry["partition"]:
                assert moved.move.donor == owner
                if "extracted" not in moved.times_s or entry["at"] <= moved.times_s["extracted"]:
                    break
                assert entry["at"] >= moved.times_s.get("restarted", np.inf)
                owner = moved.move.receiver
        assert entry["worker"] == owner


@given(stages(BY_CONTENT), st.integers(0, 2**20))
def test_steps_follow_each_other_and_take_their_time(of, seed):
    run = simulate(of, Drawn(), 0.05, Actors(AnyMoves(seed)), interval_s=0.05)
    for moved in run.moves:
        times = [moved.times_s[step] for step in STEPS if step in moved.times_s]
        assert times == sorted(times)
        assert list(moved.times_s) == list(STEPS[: len(times)])
        if len(times) == len(STEPS):
            at = moved.times_s
            size = of.state_sizes()[moved.move.partition]
            message_s, marshal_s = of.network.latency_s, of.costs.marshal_s * size
            assert moved.state_bytes == size * 80
            assert at["paused"] - at["decided"] >= 2 * message_s - 1e-12
            assert at["quiesced"] - at["paused"] >= message_s - 1e-12
            speed = max((one.speed for one in of.disturbances if hasattr(one, "speed")), default=1)
            assert at["extracted"] - at["quiesced"] >= marshal_s / max(1, speed) - 1e-12
            assert at["received"] - at["extracted"] >= moved.state_bytes * 8 / 250e6 - 1e-12
            assert at["restarted"] - at["installed"] == pytest.approx(message_s)


@given(stages(BY_CONTENT), st.integers(0, 2**20))
def test_every_round_is_carried_out_before_the_next(of, seed):
    controller = AnyMoves(seed)
    run = simulate(of, Drawn(), 0.04, Actors(controller))
    owners = of.owners.copy()
    for done, seen in zip(run.rounds, controller.owners, strict=False):
        assert (seen == owners).all()
        for move in done.moves:
            owners[move.partition] = move.receiver


def test_a_state_is_where_its_partition_is():
    """Also while it is on the wire, where neither worker has it."""
    stage = Stage(small(window=3, state_tuples=10**5), Drawn())
    stage.run(0.01)
    before = stage.arrays["window"]["sum"][0], stage.arrays["partition"]["processed"][0]
    assert before[0] > 0
    movement = Movement(stage)
    movement.start([Move(0, 0, 1)], lambda: None)
    while not movement.on_the_wire:
        stage.run(stage.now_s + 1e-4)
    assert stage.arrays["window"]["sum"][0] == 0
    processed = stage.arrays["partition"]["processed"][0]
    held = movement.on_the_wire[0].windows["sum"][0]
    while movement.moving:
        stage.run(stage.now_s + 1e-4)
    stage.run(stage.now_s + 0.01)
    assert held > before[0]
    assert stage.arrays["partition"]["processed"][0] > processed
    assert stage.arrays["partition"]["owner"][0] == 1


def test_a_move_of_800_kb_takes_26_ms_to_send():
    stage = Stage(small(), Drawn())
    movement = Movement(stage)
    movement.start([Move(0, 0, 1)], lambda: None)
    stage.run(0.5)
    (moved,) = movement.log
    assert moved.times_s["received"] - moved.times_s["extracted"] == pytest.approx(800_000 * 8 / 250e6)
    assert moved.times_s["extracted"] - moved.times_s["quiesced"] == pytest.approx(2e-3, rel=0.2)


def test_the_order_is_read_by_both_workers():
    """ "The moves are then sent to both the originating and destination Flux-Cons instances" (section 5.2)."""
    stage = Stage(small(), Drawn())
    stage.do(1, Job(0.2, 0.0, lambda: None))
    movement = Movement(stage)
    movement.start([Move(0, 0, 1)], lambda: None)
    stage.run(0.19)
    assert (movement.network.rates, list(movement.on_the_wire)) == ({}, [0]), "a busy receiver has not read its order"
    stage.run(0.5)
    assert movement.log[0].times_s["received"] == pytest.approx(0.2 + 800_000 * 8 / 250e6, abs=1e-3)


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        ([], "at least one move"),
        ([Move(0, 0, 1), Move(0, 0, 1)], "already moving"),
        ([Move(0, 1, 0)], "its owner is worker 0"),
        ([Move(0, 0, 2)], "of 2"),
        ([Move(0, 0, 0)], "itself"),
    ],
)
def test_moves_that_cannot_be_are_refused(moves, told):
    with pytest.raises(BadInput, match=told):
        Movement(Stage(small(), Drawn())).start(moves, lambda: None)


def test_river_has_nothing_to_move():
    with pytest.raises(UsageError, match="router river"):
        simulate(replace(small(), router=Router.RIVER), Drawn(), 1.0, Actors(AnyMoves(0)))


def test_what_a_move_takes_besides_its_state_is_charged():
    """Two moves are ordered 10 ms on, while their donor is busy with rows from 1 to 51 and to 101 ms."""
    fixed = FixedCosts(order_s=2e-3, extract_s=3e-3, install_s=5e-3, between_rows=True)
    settings = StageSettings(
        workers=2,
        owners=np.zeros(3, np.int32),
        partition_of=np.arange(3, dtype=np.int32),
        network=Network(latency_s=1e-3),
        costs=Costs(service_s=0.05, service_sd_s=0.0, produce_s=0.0, fixed=fixed),
        state_tuples=0,
    )
    chunk = Chunk(np.full(2, 2, np.int32), np.zeros(2, np.int32), np.zeros(2))
    stage = Stage(settings, Rows(lambda: iter([chunk])))
    stage.run(0.01)
    movement = Movement(stage)
    movement.start([Move(0, 0, 1), Move(1, 0, 1)], lambda: None)
    stage.run(0.2)
    steps = [{step: round(1e3 * at_s, 6) for step, at_s in moved.times_s.items()} for moved in movement.log]
    # ordered by 14, read after the row in service, paused a message later; no row is ahead, but the order to extract
    # waits for the next row; the second state is extracted and installed after the first
    first = {"decided": 10, "paused": 52, "quiesced": 53, "extracted": 104, "received": 104}
    assert steps[0] == {**first, "installed": 109, "restarted": 110}
    assert steps[1] == {**first, "extracted": 107, "received": 107, "installed": 114, "restarted": 115}
