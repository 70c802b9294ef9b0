"""Changes that Python makes to a running stage."""

from typing import Any

import numpy as np

from adapt.core.compiled import compiled, inlined
from adapt.core.stage.engine.kernel.connections import (
    hold_for,
    leave_channel,
    send_waiting,
    set_due,
    stop_waiting,
    wait_for_room,
)
from adapt.core.stage.engine.kernel.routing import fill_pool
from adapt.core.stage.records.arrays import (
    IDLE,
    NONE,
    Records,
    channel_at,
    connection_at,
    flow_at,
    group_at,
    partition_at,
    pooled_at,
    producer_at,
    worker_at,
)
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
    if world.lines != 0:
        for producer in range(world.workers):
            _leave_line(world, producer, partition, record.owner)
        return
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
    now = world.now
    for producer in range(world.workers):
        if producer_at(world, producer).host == NONE:
            continue
        if flow_at(world, producer * world.partitions + partition).head != NONE:
            if world.lines != 0:
                _rejoin_line(world, producer, partition, owner)
            else:
                wait_for_room(world, producer, partition, owner)
            send_waiting(world, producer, owner, now)
        fill_pool(world, producer, now)


@inlined
def _leave_line(world: World, producer: int, partition: int, worker: int) -> None:
    """Set the buffered tuples of a paused partition aside."""
    places = producer * world.places
    channel = channel_at(world, worker * world.workers + producer)
    flow = flow_at(world, producer * world.partitions + partition)
    left: Any = np.int64(0)
    before: Any = np.int32(NONE)
    place = channel.head
    while place != NONE:
        held = pooled_at(world, places + place)
        following = held.link
        if group_at(world, held.group).partition != partition:
            before = place
        else:
            if before == NONE:
                channel.head = following
            else:
                pooled_at(world, places + before).link = following
            if flow.head == NONE:
                flow.head = place
            else:
                pooled_at(world, places + flow.tail).link = place
            flow.tail = place
            held.link = NONE
            left += 1
        place = following
    channel.tail = before
    if before == NONE:
        connection_at(world, worker * world.workers + producer).turn = NONE
    if world.cap > 0:
        hold_for(world, producer, worker, -left)
        leave_channel(world, worker, producer, left)


@inlined
def _rejoin_line(world: World, producer: int, partition: int, worker: int) -> None:
    """Merge the tuples that were set aside with those for a worker, by arrival."""
    places = producer * world.places
    channel = channel_at(world, worker * world.workers + producer)
    flow = flow_at(world, producer * world.partitions + partition)
    aside, ahead = flow.head, channel.head
    channel.head = NONE
    flow.head = NONE
    flow.tail = NONE
    while aside != NONE or ahead != NONE:
        takes_aside = ahead == NONE
        if not takes_aside and aside != NONE:
            takes_aside = pooled_at(world, places + aside).stamp < pooled_at(world, places + ahead).stamp
        place = aside if takes_aside else ahead
        following = pooled_at(world, places + place).link
        if takes_aside:
            aside = following
            if world.cap > 0:
                hold_for(world, producer, worker, 1)
        else:
            ahead = following
        if channel.head == NONE:
            channel.head = place
        else:
            pooled_at(world, places + channel.tail).link = place
        channel.tail = place
    pooled_at(world, places + channel.tail).link = NONE
    connection_at(world, worker * world.workers + producer).turn = 0


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
