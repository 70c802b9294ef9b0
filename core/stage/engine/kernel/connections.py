"""Connections with credits, flows that wait for them, and barriers.

Source: Carbone et al., "Lightweight asynchronous snapshots for distributed dataflows", 2015, for barriers."""

from typing import Any

import numpy as np

from adapt.core.compiled import compiled, inlined
from adapt.core.stage.records.arrays import (
    IDLE,
    NONE,
    Records,
    barrier_at,
    channel_at,
    connection_at,
    due_at,
    flow_at,
    group_at,
    kept_at,
    partition_at,
    pooled_at,
    producer_at,
    queued_at,
    winner_at,
    worker_at,
)
from adapt.core.stage.records.world import World


@inlined
def write_tuple(record: Any, group: int, number: int, stamp: float, cost: float) -> None:
    record.group = group
    record.number = number
    record.stamp = stamp
    record.cost = cost


@inlined
def take_in_hand(worker: Any, taken: Any, partition: int, producer: int, since: float) -> None:
    """Make a tuple the current one of a worker."""
    worker.group = taken.group
    worker.partition = partition
    worker.producer = producer
    worker.number = taken.number
    worker.stamp = taken.stamp
    worker.cost = taken.cost
    worker.taken = since


@inlined
def leave_queue(world: Any, connection: Any) -> None:
    """Take a connection's first tuple; return a full packet of credits."""
    connection.first += 1
    if connection.first == world.credits:
        connection.first = 0
    connection.count -= 1
    connection.owed += 1
    if connection.owed == world.packet or connection.count == 0:
        connection.owed = 0


@inlined
def pass_acknowledgement(worker: Any, queue: Any) -> None:
    """Count down the tuples ahead of an acknowledgement."""
    if queue.ack > 0:
        queue.ack -= 1
        if queue.ack == 0:
            worker.acks -= 1
            if worker.acks == 0:
                worker.quiesced = 1


@inlined
def set_due(world: World, slot: int, at: float) -> None:
    """Set the next event of a slot and update the tournament."""
    due_at(world, slot).at = at
    match = (world.slots + slot) >> 1
    winner: Any = slot & ~1
    if due_at(world, winner + 1).at < due_at(world, winner).at:
        winner += 1
    winner_at(world, match).slot = winner
    at = due_at(world, winner).at
    while match > 1:
        other: Any = np.int64(winner_at(world, match ^ 1).slot)
        other_at = due_at(world, other).at
        match >>= 1
        if other_at < at or (other_at == at and other < winner):
            winner = other
            at = other_at
        winner_at(world, match).slot = winner


@inlined
def place_in_connection(world: World, producer: int, worker: int, partition: int, now: float) -> Any:
    """Place in a connection for a sent tuple; wakes its consumer."""
    number = worker * world.workers + producer
    connection = connection_at(world, number)
    at = connection.first + connection.count
    if at >= world.credits:
        at -= world.credits
    connection.count += 1
    partition_at(world, partition).in_flight += 1
    begins = now
    if world.links != 0:
        sender = worker_at(world, producer)
        sender.sent = max(sender.sent, now) + sender.link
        begins = sender.sent
    arrival = begins + world.latency
    if worker_at(world, worker).doing == IDLE and arrival < due_at(world, worker).at:
        set_due(world, worker, arrival)
    place = queued_at(world, number * world.credits + at)
    place.partition = partition
    place.at = arrival
    return place


@inlined
def wait_for_room(world: World, producer: int, partition: int, worker: int) -> None:
    """Queue a partition for a connection."""
    flows = producer * world.partitions
    connection = connection_at(world, worker * world.workers + producer)
    flow_at(world, flows + partition).after = NONE
    if connection.turn == NONE:
        connection.turn = partition
    else:
        flow_at(world, flows + connection.last).after = partition
    connection.last = partition


@inlined
def stop_waiting(world: World, producer: int, partition: int, worker: int) -> None:
    """Remove a partition from the queue of a connection."""
    flows = producer * world.partitions
    connection = connection_at(world, worker * world.workers + producer)
    following = flow_at(world, flows + partition).after
    before: Any = np.int32(NONE)
    at = connection.turn
    while at != partition:
        before = at
        at = flow_at(world, flows + at).after
    if before == NONE:
        connection.turn = following
    else:
        flow_at(world, flows + before).after = following
    if connection.last == partition:
        connection.last = before


@inlined
def send_waiting(world: World, producer: int, worker: int, now: float) -> None:
    """Send waiting tuples while a connection has room."""
    connection = connection_at(world, worker * world.workers + producer)
    while connection.turn != NONE and connection.count + connection.owed < world.credits:
        forward(world, producer, worker, now)


@inlined
def forward(world: World, producer_number: int, worker: int, now: float) -> None:
    """Send the next tuple of the buffer through a connection with room."""
    if world.lines != 0:
        _forward_in_order(world, producer_number, worker, now)
        return
    connection = connection_at(world, worker * world.workers + producer_number)
    partition = connection.turn
    flow = flow_at(world, producer_number * world.partitions + partition)
    place = flow.head
    held = pooled_at(world, producer_number * world.places + place)
    flow.head = held.link
    connection.turn = flow.after
    if held.link != NONE:
        wait_for_room(world, producer_number, partition, worker)
    _send(world, producer_number, worker, partition, place, now)


@inlined
def _forward_in_order(world: World, producer_number: int, worker: int, now: float) -> None:
    """Send the oldest tuple for a worker."""
    number = worker * world.workers + producer_number
    channel = channel_at(world, number)
    place = channel.head
    held = pooled_at(world, producer_number * world.places + place)
    channel.head = held.link
    if held.link == NONE:
        connection_at(world, number).turn = NONE
    if world.cap > 0:
        hold_for(world, producer_number, worker, -1)
    _send(world, producer_number, worker, group_at(world, held.group).partition, place, now)


@inlined
def join_line(world: World, producer_number: int, worker: int, place: int) -> None:
    """Append a buffered tuple to those for a worker."""
    number = worker * world.workers + producer_number
    channel = channel_at(world, number)
    if channel.head == NONE:
        channel.head = place
        connection_at(world, number).turn = 0
    else:
        pooled_at(world, producer_number * world.places + channel.tail).link = place
    channel.tail = place
    if world.cap > 0:
        hold_for(world, producer_number, worker, 1)


@inlined
def hold_for(world: World, producer_number: int, worker: int, tuples: int) -> None:
    """Count buffered tuples for a worker; at the cap their producer stops."""
    channel = channel_at(world, worker * world.workers + producer_number)
    was = channel.waiting >= world.cap
    channel.waiting += tuples
    now = channel.waiting >= world.cap
    if now != was:
        producer_at(world, producer_number).capped += 1 if now else -1


@inlined
def forward_anywhere(world: World, producer_number: int, worker: int, now: float) -> None:
    """Send the oldest tuple of the buffer through a connection with room."""
    flow = flow_at(world, producer_number * world.partitions)
    place = flow.head
    held = pooled_at(world, producer_number * world.places + place)
    flow.head = held.link
    _send(world, producer_number, worker, group_at(world, held.group).partition, place, now)


@inlined
def _send(world: World, producer_number: int, worker: int, partition: int, place: int, now: float) -> None:
    """Send a tuple of the buffer and free its place."""
    producer = producer_at(world, producer_number)
    held = pooled_at(world, producer_number * world.places + place)
    sent = place_in_connection(world, producer_number, worker, partition, now)
    write_tuple(sent, held.group, held.number, held.stamp, held.cost)
    producer.held -= 1
    if world.standby != 0:
        keep_sent(world, producer_number, partition, place)
    else:
        held.link = producer.free
        producer.free = place


@inlined
def keep_sent(world: World, producer_number: int, partition: int, place: int) -> None:
    """Keep a sent tuple until it is acknowledged."""
    kept = kept_at(world, producer_number * world.partitions + partition)
    places = producer_number * world.places
    pooled_at(world, places + place).link = NONE
    if kept.head == NONE:
        kept.head = place
    else:
        pooled_at(world, places + kept.tail).link = place
    kept.tail = place


@inlined
def leave_channel(world: World, worker: int, producer: int, tuples: int) -> None:
    """Count down the tuples of a channel ahead of its barrier."""
    number = worker * world.workers + producer
    channel = channel_at(world, number)
    if channel.ahead > 0 and tuples > 0:
        channel.ahead = max(0, channel.ahead - tuples)
        if channel.ahead == 0:
            _reach(world, worker, number)


@inlined
def _reach(world: World, worker: int, number: int) -> None:
    """Stop a channel at its barrier; the last barrier of a worker lets all go on."""
    channel_at(world, number).stopped = 1
    barrier = barrier_at(world, worker)
    barrier.missing -= 1
    if barrier.missing == 0:
        for producer in range(world.workers):
            channel_at(world, worker * world.workers + producer).stopped = 0
        world.unaligned -= 1
        world.barriers = world.unaligned > 0
        world.hungry += 1


@compiled
def send_barriers(worlds: Records) -> None:
    """Send barriers through all channels, behind the tuples there."""
    world = worlds[0]
    world.barriers = 1
    world.unaligned = world.workers
    for number in range(world.workers * world.workers):
        channel = channel_at(world, number)
        channel.ahead = connection_at(world, number).count + channel.waiting
    for worker in range(world.workers):
        barrier_at(world, worker).missing = world.workers


@compiled
def arrive_alone(worlds: Records, number: int) -> None:
    """Let the barrier of a channel arrive that had no tuples ahead."""
    world = worlds[0]
    _reach(world, number // world.workers, number)
