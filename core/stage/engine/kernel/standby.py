"""Standby: replicas process each tuple after its owner."""

from typing import Any

import numpy as np

from adapt.core.compiled import compiled, inlined
from adapt.core.stage.engine.kernel.connections import pass_acknowledgement, set_due, take_in_hand, write_tuple
from adapt.core.stage.engine.kernel.routing import commit, window_sum
from adapt.core.stage.records.arrays import (
    ANSWERED,
    IDLE,
    NONE,
    SERVING,
    Records,
    due_at,
    flow_at,
    kept_at,
    line_at,
    mirrored_at,
    partition_at,
    pooled_at,
    producer_at,
    worker_at,
)
from adapt.core.stage.records.world import World


@inlined
def send_to_twin(world: World, worker_number: int, twin: int, answer: int, now: float) -> None:
    """Forward a processed tuple to the replica, at the producing cost."""
    worker = worker_at(world, worker_number)
    place = world.mirror_free
    entry = mirrored_at(world, place)
    world.mirror_free = entry.link
    write_tuple(entry, worker.group, worker.number, worker.stamp, worker.cost)
    entry.partition = worker.partition
    entry.producer = worker.producer
    entry.answer = answer
    entry.pairs = worker.pairs
    entry.taken = worker.taken
    entry.at = now + world.latency
    entry.link = NONE
    line = line_at(world, twin)
    if line.head == NONE:
        line.head = place
    else:
        mirrored_at(world, line.tail).link = place
    line.tail = place
    line.count += 1
    worker.debt += world.produce
    world.mirrored += 1
    kept_at(world, worker.producer * world.partitions + worker.partition).pending += 1
    if worker_at(world, twin).doing == IDLE and entry.at < due_at(world, twin).at:
        set_due(world, twin, entry.at)


@inlined
def take_mirrored(worker: Any, entry: Any) -> None:
    """Take a forwarded tuple into service."""
    take_in_hand(worker, entry, entry.partition, entry.producer, entry.taken)
    worker.matches = entry.answer
    worker.pairs = entry.pairs


@inlined
def finish_mirrored(world: World, worker_number: int, now: float) -> None:
    """Finish a forwarded tuple, at the replica or at its promoted owner."""
    worker = worker_at(world, worker_number)
    if worker.mirrored == ANSWERED:
        worker.mirrored = 0
        return
    line = line_at(world, worker_number)
    place = line.head
    entry = mirrored_at(world, place)
    worker.mirrored = 0
    line.head = entry.link
    line.count -= 1
    entry.link = world.mirror_free
    world.mirror_free = place
    partition = partition_at(world, worker.partition)
    promoted = partition.owner == worker_number
    if promoted:
        partition.in_flight -= 1
    if world.window > 0:
        answer = window_sum(world, worker.group if promoted else world.groups + worker.group, worker.number)
        if answer != entry.answer:
            world.disagreed += 1
    kept_at(world, worker.producer * world.partitions + worker.partition).pending -= 1
    commit(world, worker, worker_number, entry.answer, now)
    pass_acknowledgement(worker, line)


@compiled
def put_back(worlds: Records, partition: int) -> int:
    """Put back sent tuples of a partition that its replica lacks.

    Acknowledged tuples are gone already. The partition must not wait for a connection.

    Returns:
        Number of tuples.
    """
    world = worlds[0]
    sent = 0
    for producer_number in range(world.workers):
        kept = kept_at(world, producer_number * world.partitions + partition)
        flow = flow_at(world, producer_number * world.partitions + partition)
        places = producer_number * world.places
        last: Any = np.int32(NONE)
        first = kept.head
        for _ in range(kept.pending):
            last = first
            first = pooled_at(world, places + first).link
        if first == NONE:
            continue
        at = first
        while at != NONE:
            sent += 1
            producer_at(world, producer_number).held += 1
            at = pooled_at(world, places + at).link
        pooled_at(world, places + kept.tail).link = flow.head
        if flow.head == NONE:
            flow.tail = kept.tail
        flow.head = first
        kept.tail = last
        if last == NONE:
            kept.head = NONE
        else:
            pooled_at(world, places + last).link = NONE
    return sent


@compiled
def answer_for(worlds: Records, number: int, partition: int, commits: bool) -> None:
    """Take the tuples of a partition out of a line.

    Its owner commits them, or they are dropped. A tuple in service is taken out as well, so that its result is
    ignored. No acknowledgement may be behind them.
    """
    world = worlds[0]
    line, worker = line_at(world, number), worker_at(world, number)
    serving = worker.doing == SERVING and worker.mirrored != 0 and worker.mirrored != ANSWERED
    before: Any = np.int32(NONE)
    place = line.head
    while place != NONE:
        entry = mirrored_at(world, place)
        following = entry.link
        if entry.partition != partition:
            before = place
            place = following
            continue
        if place == line.head and serving:
            worker.mirrored = ANSWERED
        kept_at(world, entry.producer * world.partitions + partition).pending -= 1
        if commits:
            commit(world, entry, partition_at(world, partition).owner, entry.answer, world.now)
        if before == NONE:
            line.head = following
        else:
            mirrored_at(world, before).link = following
        if line.tail == place:
            line.tail = before
        line.count -= 1
        entry.link = world.mirror_free
        world.mirror_free = place
        place = following
        serving = False
