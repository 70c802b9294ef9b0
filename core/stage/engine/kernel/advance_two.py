"""Compiled event loop of two stages in a row with shared CPUs.

Tuples emitted by the first stage are routed by the producer of the second on the same worker.
"""

import math
from typing import Any

import numpy as np

from adapt.core.compiled import compiled, inlined
from adapt.core.random_bits import GOLDEN, MIX1, mixed, uniform
from adapt.core.stage.engine.kernel.next_event import set_due
from adapt.core.stage.engine.kernel.producers import fill_pool
from adapt.core.stage.engine.kernel.routing import DRAWN, group_of, route_tuple
from adapt.core.stage.engine.kernel.service import begin_work, finish_tuple
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.codes import (
    BLOCKED,
    FREE,
    IDLE,
    IN_JOB,
    JOB_DONE,
    NONE,
    QUIESCED,
    REACHED,
    ROWS_WANTED,
    SERVING,
)
from adapt.core.stage.records.finding import cpu_at, due_at, producer_at, window_at, winner_at, worker_at


@compiled
def advance_two(worlds: Records, until: float) -> tuple[int, int, int]:
    """Simulate two stages in a row, as `advance` does one.

    A CPU serves one consumer at a time, in turn.

    Returns:
        Return code, worker and stage.
    """
    first, second = worlds[0], worlds[1]
    for worker_number in range(first.workers):  # Python may have made room or work
        _unblock(worlds, worker_number, first.now)
        _share(worlds, worker_number, first.now)
    while True:
        if first.hungry > 0:
            return ROWS_WANTED, NONE, 0
        stage = 0
        now = due_at(first, winner_at(first, 1).slot).at
        if due_at(second, winner_at(second, 1).slot).at < now:
            stage = 1
            now = due_at(second, winner_at(second, 1).slot).at
        if now >= until:
            first.now = until
            second.now = until
            return REACHED, NONE, 0
        first.now = now
        second.now = now
        world = worlds[stage]
        slot: Any = np.int64(winner_at(world, 1).slot)
        if slot >= world.workers:
            fill_pool(world, slot - world.workers, now)
            continue
        worker = worker_at(world, slot)
        if worker.doing == SERVING:
            finish_tuple(world, slot, now)
            worker.doing = FREE
            cpu_at(first, slot).since = now
            if stage == 0:
                _make(worlds, slot, now)
            if worker.quiesced != 0:
                worker.quiesced = 0
                return QUIESCED, slot, stage
        elif worker.doing == IN_JOB:
            worker.busy += now - worker.since
            worker.doing = FREE
            cpu_at(first, slot).since = now
            return JOB_DONE, slot, stage
        elif worker.doing == IDLE:
            worker.idle += now - worker.since
            worker.doing = FREE
        _share(worlds, slot, now)


@inlined
def _share(worlds: Records, worker_number: int, now: float) -> None:
    """Give an idle CPU work, if any; consumers that wait for it have no event."""
    first, second = worlds[0], worlds[1]
    one, two = worker_at(first, worker_number), worker_at(second, worker_number)
    idle = not (one.doing == SERVING or one.doing == IN_JOB or two.doing == SERVING or two.doing == IN_JOB)
    if idle and (one.doing == FREE or two.doing == FREE):
        _give_work(worlds, worker_number, now)
    if (one.doing == FREE or one.doing == BLOCKED) and due_at(first, worker_number).at < np.inf:
        set_due(first, worker_number, np.inf)
    if two.doing == FREE and due_at(second, worker_number).at < np.inf:
        set_due(second, worker_number, np.inf)


@inlined
def _give_work(worlds: Records, worker_number: int, now: float) -> None:
    """Let free consumers of a worker look for work in turn, after the CPU debt of its producers."""
    first, second = worlds[0], worlds[1]
    one, two, cpu = worker_at(first, worker_number), worker_at(second, worker_number), cpu_at(first, worker_number)
    waited = now - cpu.since
    cpu.since = now
    cpu.idle += waited
    debt = max(0.0, one.debt + two.debt - waited)
    one.debt = 0.0
    two.debt = 0.0
    for step in range(2):
        stage = (cpu.turn + step) & 1
        mine = one if stage == 0 else two
        if mine.doing == FREE:
            mine.debt += debt
            debt = 0.0
            begin_work(worlds[stage], worker_number, now)
            if mine.doing != IDLE:
                cpu.turn = 1 - stage
                if stage == 1 and mine.doing == SERVING:
                    producer: Any = np.int64(two.producer)
                    _unblock(worlds, producer, now)
                return
            debt = mine.debt
            mine.debt = 0.0
    one.debt = debt


@inlined
def _make(worlds: Records, worker_number: int, now: float) -> None:
    """Emit tuples of a processed tuple to the second stage; block without room.

    Number and groups of the emitted tuples depend only on the input tuple, not on the processing order.
    """
    first, second = worlds[0], worlds[1]
    worker, cpu = worker_at(first, worker_number), cpu_at(first, worker_number)
    bits = mixed(np.uint64(worker.number) * GOLDEN + np.uint64(worker.producer) * MIX1 + np.uint64(1))
    whole = math.floor(second.selectivity)
    cpu.left = whole
    if uniform(bits) < second.selectivity - whole:
        cpu.left += 1
    cpu.bits = bits
    cpu.value = worker.number
    if first.window > 0:
        cpu.value = window_at(first, worker.group).sum
    _hand_on(worlds, worker_number, now)
    if cpu.left > 0:
        worker.doing = BLOCKED
        worker.since = now


@inlined
def _hand_on(worlds: Records, worker_number: int, now: float) -> None:
    """Pass emitted tuples to the producer of the second stage, as far as it has room."""
    first, second = worlds[0], worlds[1]
    worker, cpu, producer = (
        worker_at(first, worker_number),
        cpu_at(first, worker_number),
        producer_at(second, worker_number),
    )
    while cpu.left > 0 and producer.held < second.pool:
        cpu.bits += GOLDEN
        cpu.left -= 1
        producer.generated += 1
        worker.debt += second.produce
        route_tuple(second, worker_number, group_of(second, mixed(cpu.bits)), cpu.value, worker.stamp, DRAWN, now)


@inlined
def _unblock(worlds: Records, worker_number: int, now: float) -> None:
    """Unblock a consumer of the first stage if there is room."""
    first = worlds[0]
    worker = worker_at(first, worker_number)
    if worker.doing == BLOCKED:
        _hand_on(worlds, worker_number, now)
        if cpu_at(first, worker_number).left == 0:
            worker.idle += now - worker.since
            worker.doing = FREE
            set_due(first, worker_number, now)
