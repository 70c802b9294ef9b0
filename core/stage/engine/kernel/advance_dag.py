"""Compiled event loop of a DAG of stages with shared CPUs.

Stages are in topological order. Tuples emitted by a stage are routed by the producers of the next ones on the same
worker.
"""

import math
from typing import Any

import numpy as np

from adapt.core.compiled import compiled, fetch_ahead, inlined
from adapt.core.random_bits import GOLDEN, MIX1, mixed, uniform
from adapt.core.stage.engine.kernel.advance import begin_work, finish_tuple
from adapt.core.stage.engine.kernel.connections import set_due
from adapt.core.stage.engine.kernel.routing import DRAWN, cell_of, fill_pool, group_of, route_tuple
from adapt.core.stage.records.arrays import (
    BACKLOG_DONE,
    BLOCKED,
    FREE,
    GROWN,
    IDLE,
    IN_JOB,
    JOB_DONE,
    NONE,
    QUIESCED,
    REACHED,
    ROWS_WANTED,
    SERVING,
    SPILL_FULL,
    Records,
    connection_at,
    cpu_at,
    due_at,
    edge_at,
    group_at,
    outbox_at,
    partition_at,
    producer_at,
    queued_at,
    window_at,
    winner_at,
    worker_at,
)
from adapt.core.stage.records.world import GROUP, PARTITION, QUEUED, World

_LINEAGE = np.uint64(12)
"""Bits of a tuple's identity that its cost, a double, does not hold."""


@compiled
def advance_dag(worlds: Records, until: float) -> tuple[int, int, int]:
    """Simulate all stages, as `advance` does one.

    A CPU serves one consumer at a time, in turn.

    Returns:
        Return code, worker and stage.
    """
    host = worlds[0]
    for worker_number in range(host.workers):  # Python may have made room or work
        spent = _refresh(worlds, worker_number, host.now)
        if spent != NONE:
            return BACKLOG_DONE, worker_number, spent
    while True:
        stage: Any = np.int64(0)
        now = np.inf
        for number in range(len(worlds)):
            world = worlds[number]
            if world.hungry > 0:
                return _returned(worlds, world.now, ROWS_WANTED, NONE, number)
            at = due_at(world, winner_at(world, 1).slot).at
            if at < now:
                stage = np.int64(number)
                now = at
        if now >= until:
            return _returned(worlds, until, REACHED, NONE, 0)
        world = worlds[stage]
        if world.on_disk > 0 and world.spill_free == NONE:
            return _returned(worlds, now, SPILL_FULL, NONE, stage)
        world.now = now
        slot: Any = np.int64(winner_at(world, 1).slot)
        if slot >= world.workers:
            fill_pool(world, slot - world.workers, now)
            continue
        worker = worker_at(world, slot)
        if worker.doing == SERVING:
            processed = worker.spilling == 0
            finish_tuple(world, slot, now)
            worker.doing = FREE
            _leave_cpu(host, slot, now)
            if processed and world.edges_first < world.edges_end:
                _make(worlds, stage, slot, now)
            if worker.quiesced != 0:
                worker.quiesced = 0
                return _returned(worlds, now, QUIESCED, slot, stage)
        elif worker.doing == IN_JOB:
            worker.busy += now - worker.since
            worker.doing = FREE
            _leave_cpu(host, slot, now)
            return _returned(worlds, now, JOB_DONE, slot, stage)
        elif worker.doing == IDLE:
            worker.idle += now - worker.since
            worker.doing = FREE
        if worker.full == 1:
            worker.full = 2
            return _returned(worlds, now, GROWN, slot, stage)
        if _backlog_is_spent(world, slot):
            return _returned(worlds, now, BACKLOG_DONE, slot, stage)
        _share(worlds, slot, now)
        _wait_for_cpu(world, slot)


@inlined
def _returned(worlds: Records, now: float, why: int, worker: int, stage: int) -> tuple[int, int, int]:
    """What the kernel returns, with all clocks set."""
    for number in range(len(worlds)):
        worlds[number].now = now
    return why, worker, stage


@inlined
def _refresh(worlds: Records, worker_number: int, now: float) -> Any:
    """Give a CPU work; returns a stage with a spent backlog, or `NONE`."""
    cpu = cpu_at(worlds[0], worker_number)
    cpu.serving = NONE
    for number in range(len(worlds)):
        doing = worker_at(worlds[number], worker_number).doing
        if doing in (SERVING, IN_JOB):
            cpu.serving = number
        elif doing == BLOCKED:
            _unblock(worlds, number, worker_number, now)
    for number in range(len(worlds)):
        if _backlog_is_spent(worlds[number], worker_number):
            return np.int64(number)
    _share(worlds, worker_number, now)
    for number in range(len(worlds)):
        _wait_for_cpu(worlds[number], worker_number)
    return np.int64(NONE)


@inlined
def _backlog_is_spent(world: World, worker_number: int) -> Any:
    """Whether a free consumer has processed its backlog, which ends."""
    worker = worker_at(world, worker_number)
    if worker.doing != FREE or _has_work(world, worker):
        return False
    worker.backlog = NONE
    return True


@inlined
def _has_work(world: World, worker: Any) -> Any:
    """Whether a free consumer may begin work: its backlog, if any, is not spent."""
    return worker.backlog == NONE or worker.job != 0 or partition_at(world, worker.backlog).spill_head != NONE


@inlined
def _leave_cpu(host: World, worker_number: int, now: float) -> None:
    """Record that a consumer has left the CPU."""
    cpu = cpu_at(host, worker_number)
    cpu.since = now
    cpu.serving = NONE


@inlined
def _wait_for_cpu(world: World, worker_number: int) -> None:
    """Drop the event of a consumer that waits for the CPU or for room."""
    doing = worker_at(world, worker_number).doing
    if doing in (FREE, BLOCKED) and due_at(world, worker_number).at < np.inf:
        set_due(world, worker_number, np.inf)


@inlined
def _share(worlds: Records, worker_number: int, now: float) -> None:
    """Give an idle CPU work, if any consumer is free."""
    if cpu_at(worlds[0], worker_number).serving == NONE:
        for number in range(len(worlds)):
            _wake(worlds[number], worker_number, now)
        for number in range(len(worlds)):
            if worker_at(worlds[number], worker_number).doing == FREE:
                _give_work(worlds, worker_number, now)
                return


@inlined
def _wake(world: World, worker_number: int, now: float) -> None:
    """Free an idle consumer whose tuple arrives now: its stage may come first, although its event is still pending."""
    worker = worker_at(world, worker_number)
    if worker.doing == IDLE and worker.full != 1 and due_at(world, worker_number).at <= now:
        worker.idle += now - worker.since
        worker.doing = FREE


@inlined
def _give_work(worlds: Records, worker_number: int, now: float) -> None:
    """Let free consumers of a worker look for work in turn, after the CPU debt of its producers."""
    host = worlds[0]
    cpu = cpu_at(host, worker_number)
    waited = now - cpu.since
    cpu.since = now
    cpu.idle += waited
    debt = 0.0
    for number in range(len(worlds)):
        worker = worker_at(worlds[number], worker_number)
        debt += worker.debt
        worker.debt = 0.0
    debt = max(0.0, debt - waited)
    stage: Any = np.int64(cpu.turn)
    for _ in range(len(worlds)):
        world = worlds[stage]
        mine = worker_at(world, worker_number)
        following: Any = stage + 1
        if following == len(worlds):
            following = np.int64(0)
        if mine.doing == FREE and _has_work(world, mine):  # a spent backlog is reported first
            mine.debt += debt
            debt = 0.0
            begin_work(world, worker_number, now)
            if mine.doing != IDLE:
                cpu.turn = following
                cpu.serving = stage
                if mine.doing == SERVING:
                    producer: Any = np.int64(mine.producer)
                    _room_made(worlds, stage, producer, now)
                    _expect_make(worlds, stage, worker_number)
                    _expect_take(worlds, following, worker_number)
                return
            debt = mine.debt
            mine.debt = 0.0
        stage = following
    worker_at(host, worker_number).debt = debt


@inlined
def _room_made(worlds: Records, stage: int, producer: int, now: float) -> None:
    """Unblock the consumers that wait for room in the buffer of a producer of a stage."""
    host = worlds[0]
    for number in range(host.edges):
        edge = edge_at(host, number)
        if edge.target == stage and worker_at(worlds[edge.source], producer).doing == BLOCKED:
            source: Any = np.int64(edge.source)
            _unblock(worlds, source, producer, now)


@inlined
def _identity(cost: float, number: int, producer: int) -> Any:
    """Bits that tell a tuple from all others."""
    if cost < DRAWN:
        return np.uint64(-cost) * GOLDEN
    return np.uint64(number) * GOLDEN + np.uint64(producer) * MIX1


@inlined
def _first_bits(identity: Any, edge: int) -> Any:
    """Bits that give the first tuple sent on an edge its group."""
    return mixed(mixed(identity + np.uint64(1 + edge)) + GOLDEN)


@inlined
def _expect_take(worlds: Records, stage: int, worker_number: int) -> None:
    """Prefetch partition and made group of the tuple that a consumer takes next."""
    host, world = worlds[0], worlds[stage]
    producer: Any = np.int64(worker_at(world, worker_number).poll)
    index = worker_number * world.workers + producer
    connection = connection_at(world, index)
    if connection.count == 0:
        return
    taken = queued_at(world, index * world.credits + connection.first)
    fetch_ahead(world.partition_at, PARTITION, taken.partition)
    identity = _identity(taken.cost, taken.number, producer)
    for number in range(world.edges_first, world.edges_end):
        into = worlds[edge_at(host, number).target]
        fetch_ahead(into.group_at, GROUP, cell_of(into, _first_bits(identity, number)))


@inlined
def _expect_make(worlds: Records, stage: int, worker_number: int) -> None:
    """Prefetch where the first tuple made of the one in service will go."""
    host, world = worlds[0], worlds[stage]
    worker = worker_at(world, worker_number)
    identity = _identity(worker.cost, worker.number, worker.producer)
    for number in range(world.edges_first, world.edges_end):
        into = worlds[edge_at(host, number).target]
        group = group_of(into, _first_bits(identity, number))
        partition = partition_at(into, group_at(into, group).partition)
        index = partition.owner * into.workers + worker_number
        connection = connection_at(into, index)
        place = connection.first + connection.count
        if place >= into.credits:
            place -= into.credits
        fetch_ahead(into.queued_at, QUEUED, index * into.credits + place)


@inlined
def _make(worlds: Records, stage: int, worker_number: int, now: float) -> None:
    """Emit tuples of a processed tuple to the next stages; block without room.

    Number and groups of the emitted tuples depend only on the input tuple, not on the processing order or placement.
    """
    host, world = worlds[0], worlds[stage]
    worker = worker_at(world, worker_number)
    identity = _identity(worker.cost, worker.number, worker.producer)
    value = worker.number
    if world.window > 0:
        value = window_at(world, worker.group).sum
    for number in range(world.edges_first, world.edges_end):
        edge = edge_at(host, number)
        if edge.open != 0:
            outbox = outbox_at(host, number * host.workers + worker_number)
            bits = mixed(identity + np.uint64(1 + number))
            whole = math.floor(edge.selectivity)
            outbox.left = whole
            if uniform(bits) < edge.selectivity - whole:
                outbox.left += 1
            outbox.bits = bits
            outbox.value = value
    if not _hand_on(worlds, stage, worker_number, now):
        worker.doing = BLOCKED
        worker.since = now


@inlined
def _hand_on(worlds: Records, stage: int, worker_number: int, now: float) -> Any:
    """Pass emitted tuples to the producers of the next stages, as far as they have room; whether all had."""
    host, world = worlds[0], worlds[stage]
    worker = worker_at(world, worker_number)
    through = True
    for number in range(world.edges_first, world.edges_end):
        outbox = outbox_at(host, number * host.workers + worker_number)
        if outbox.left > 0:
            into = worlds[edge_at(host, number).target]
            producer = producer_at(into, worker_number)
            while outbox.left > 0 and producer.held < into.pool:
                outbox.bits += GOLDEN
                outbox.left -= 1
                producer.generated += 1
                worker.debt += into.produce
                bits = mixed(outbox.bits)
                cost = DRAWN - 1.0 - np.float64(mixed(bits) >> _LINEAGE)
                route_tuple(into, worker_number, group_of(into, bits), outbox.value, worker.stamp, cost, now)
            through = through and outbox.left == 0
    return through


@inlined
def _unblock(worlds: Records, stage: int, worker_number: int, now: float) -> None:
    """Unblock a consumer if there is room."""
    if _hand_on(worlds, stage, worker_number, now):
        world = worlds[stage]
        worker = worker_at(world, worker_number)
        worker.idle += now - worker.since
        worker.doing = FREE
        set_due(world, worker_number, now)
