"""Changes that Python makes to a running stage."""

from typing import Any

import numpy as np

from adapt.core.compiled import compiled, inlined
from adapt.core.stage.engine.kernel.barriers import leave_channel
from adapt.core.stage.engine.kernel.connections import hold_for, send_waiting, stop_waiting, wait_for_room
from adapt.core.stage.engine.kernel.next_event import set_due
from adapt.core.stage.engine.kernel.producers import fill_pool
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.codes import IDLE, NONE
from adapt.core.stage.records.finding import connection_at, flow_at, partition_at, pooled_at, producer_at, worker_at
from adapt.core.stage.records.world import World


@compiled
def start(worlds: Records) -> None:
    """Let every producer fill its buffer and connections."""
    world = worlds[0]
    for producer in range(world.workers):
        fill_pool(world, producer, world.now)


@compiled
def refill(worlds: Records) -> None:
    """Resume producers that waited for rows."""
    world = worlds[0]
    world.hungry = 0
    for number in range(world.workers):
        producer = producer_at(world, number)
        if producer.hungry != 0:
            producer.hungry = 0
            fill_pool(world, number, world.now)


@compiled
def wake(worlds: Records, worker: int) -> None:
    """Wake a waiting consumer."""
    world = worlds[0]
    if worker_at(world, worker).doing == IDLE:
        set_due(world, worker, world.now)


@compiled
def pause(worlds: Records, partition: int) -> None:
    """Pause a partition: producers buffer its tuples."""
    world = worlds[0]
    record = partition_at(world, partition)
    record.stalled = 1
    if world.cap > 0:
        for producer in range(world.workers):
            tuples = _in_flow(world, producer, partition)
            hold_for(world, producer, record.owner, -tuples)
            leave_channel(world, record.owner, producer, tuples)
    for producer in range(world.workers):
        halted = producer_at(world, producer).host == NONE
        if not halted and flow_at(world, producer * world.partitions + partition).head != NONE:
            stop_waiting(world, producer, partition, record.owner)


@compiled
def restart(worlds: Records, partition: int, owner: int) -> None:
    """Restart a paused partition: producers send its tuples to the owner."""
    world = worlds[0]
    record = partition_at(world, partition)
    record.stalled = 0
    record.owner = owner
    if world.cap > 0:
        for producer in range(world.workers):
            hold_for(world, producer, owner, _in_flow(world, producer, partition))
    now = world.now
    for producer in range(world.workers):
        if producer_at(world, producer).host == NONE:
            continue
        if flow_at(world, producer * world.partitions + partition).head != NONE:
            wait_for_room(world, producer, partition, owner)
            send_waiting(world, producer, owner, now)
        fill_pool(world, producer, now)


@inlined
def _in_flow(world: World, producer: int, partition: int) -> Any:
    """Tuples of a partition in the buffer of a producer."""
    tuples: Any = np.int64(0)
    place = flow_at(world, producer * world.partitions + partition).head
    while place != NONE:
        tuples += 1
        place = pooled_at(world, producer * world.places + place).link
    return tuples


@compiled
def schedule(worlds: Records, slot: int, at: float) -> None:
    """Set the next event of a worker or, n slots on, producer."""
    set_due(worlds[0], slot, at)


@compiled
def halt(worlds: Records, producer: int) -> None:
    """Halt a producer: stop reading its input and sending its buffer."""
    world = worlds[0]
    record = producer_at(world, producer)
    record.host = NONE
    record.hungry = 0
    for worker in range(world.workers):
        connection_at(world, worker * world.workers + producer).turn = NONE
    set_due(world, world.workers + producer, np.inf)


@compiled
def resume(worlds: Records, producer: int, host: int) -> None:
    """Resume a halted producer on a worker, from its unsent rows."""
    world = worlds[0]
    record = producer_at(world, producer)
    record.host = host
    worker_at(world, host).debt += world.produce * record.held
    for partition in range(world.partitions):
        if flow_at(world, producer * world.partitions + partition).head != NONE:
            waiting = partition_at(world, partition)
            if waiting.stalled == 0:
                wait_for_room(world, producer, partition, waiting.owner)
    for worker in range(world.workers):
        send_waiting(world, producer, worker, world.now)
    fill_pool(world, producer, world.now)
