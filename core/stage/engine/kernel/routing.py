"""Producers: pull tuples while their buffers have room, and route them."""

from typing import Any

import numpy as np

from adapt.core.compiled import compiled, fetch_ahead, inlined
from adapt.core.histogram import BINS, bin_of
from adapt.core.random_bits import GOLDEN, mixed
from adapt.core.stage.engine.kernel.connections import (
    join_line,
    keep_sent,
    place_in_connection,
    set_due,
    wait_for_room,
    write_tuple,
)
from adapt.core.stage.records.arrays import (
    NONE,
    Records,
    bin_at,
    connection_at,
    entry_at,
    flow_at,
    group_at,
    joined_at,
    kept_at,
    latency_at,
    linked_at,
    newest_at,
    partition_at,
    past_at,
    pooled_at,
    producer_at,
    rank_at,
    ring_at,
    row_at,
    stamp_at,
    total_at,
    turn_at,
    window_at,
    worker_at,
)
from adapt.core.stage.records.world import FLOW, World

DRAWN = -1.0
"""The cost of a tuple whose service time is drawn."""

_LOW = np.uint64(0xFFFFFFFF)


@inlined
def route_tuple(
    world: World, producer_number: int, group: int, number: int, stamp: float, cost: float, now: float
) -> None:
    """Send a new tuple through its connection, or buffer it without room."""
    partition_number = group_at(world, group).partition
    if world.splits != 0:
        partition_number = _part_of(world, producer_number, partition_number)
    partition = partition_at(world, partition_number)
    owner: Any = np.int64(partition.owner)
    if world.anywhere:
        owner = _emptiest(world, producer_number)
        free = owner != NONE
    else:
        free = partition.stalled == 0 and _room(world, producer_number, owner) > 0
    if free:
        sent = place_in_connection(world, producer_number, owner, partition_number, now)
        write_tuple(sent, group, number, stamp, cost)
        if world.standby == 0:
            return
    producer = producer_at(world, producer_number)
    place = producer.free
    held = pooled_at(world, producer_number * world.places + place)
    producer.free = held.link
    if free:
        write_tuple(held, group, number, stamp, cost)
        keep_sent(world, producer_number, partition_number, place)
        return
    producer.held += 1
    write_tuple(held, group, number, stamp, cost)
    held.link = NONE
    if world.lines != 0 and partition.stalled == 0:
        join_line(world, producer_number, owner, place)
        return
    listed = 0 if world.anywhere else partition_number
    flow = flow_at(world, producer_number * world.partitions + listed)
    if flow.head == NONE:
        flow.head = place
        if partition.stalled == 0 and not world.anywhere:
            wait_for_room(world, producer_number, partition_number, owner)
    else:
        pooled_at(world, producer_number * world.places + flow.tail).link = place
    flow.tail = place


@inlined
def _part_of(world: World, producer_number: int, partition: int) -> Any:
    """The part of a partition whose turn it is at a producer."""
    turn = turn_at(world, producer_number * world.partitions + partition)
    part = turn.part
    turn.part = ring_at(world, part).following
    return part


@inlined
def _room(world: World, producer_number: int, worker: int) -> Any:
    """Credits that a producer has for a worker."""
    connection = connection_at(world, worker * world.workers + producer_number)
    return world.credits - connection.count - connection.owed


@inlined
def _emptiest(world: World, producer_number: int) -> Any:
    """A worker drawn by the room in its connection, or `NONE`."""
    room = 0
    for worker in range(world.workers):
        room += _room(world, producer_number, worker)
    if room == 0:
        return np.int64(NONE)
    left: Any = np.int64((random_bits(world, producer_number) >> np.uint64(32)) * np.uint64(room) >> np.uint64(32))
    drawn: Any = np.int64(0)
    while True:
        left -= _room(world, producer_number, drawn)
        if left < 0:
            return drawn
        drawn += 1


@inlined
def cell_of(world: World, bits: Any) -> Any:
    """Cell of the alias table that random bits choose."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(world.groups)) >> np.uint64(32))


@inlined
def group_of(world: World, bits: Any) -> Any:
    """Group drawn from random bits by the alias table."""
    at = cell_of(world, bits)
    group = group_at(world, at)
    if np.int64(bits & _LOW) >= group.threshold:
        return np.int64(group.alias)
    return at


@inlined
def random_bits(world: World, producer_number: int) -> Any:
    """Next random bits of a producer (splitmix64)."""
    producer = producer_at(world, producer_number)
    producer.random += GOLDEN
    return mixed(producer.random)


@inlined
def fill_pool(world: World, producer_number: int, now: float) -> None:
    """Pull tuples while the buffer has room."""
    producer = producer_at(world, producer_number)
    slot = world.workers + producer_number
    if world.drawn == 0:
        count_arrived(world, producer, now)
    while producer.held < world.pool and producer.free != NONE and producer.capped == 0:
        if world.drawn:
            group = _draw(world, producer_number)
            number = producer.generated
            stamp = now
            cost = DRAWN
        else:
            if world.batched != 0 and producer.admits == 0:
                break
            if producer.row == producer.rows_end:
                if world.horizon <= now:
                    producer.hungry = 1
                    world.hungry += 1
                set_due(world, slot, world.horizon if world.horizon > now else np.inf)
                return
            row = row_at(world, producer.row)
            if row.due > now:
                set_due(world, slot, row.due)
                return
            producer.admits -= world.batched
            producer.row += 1
            group = row.group
            number = row.number
            stamp = row.due
            cost = row.cost
            if stamp == -np.inf:
                stamp = now
            if now > stamp:
                producer.waited = max(producer.waited, now - stamp)
                producer.behind += now - max(stamp, producer.behind_until)
                producer.behind_until = now
        producer.generated += 1
        worker_at(world, producer.host).debt += world.produce
        route_tuple(world, producer_number, group, number, stamp, cost, now)
    if not world.drawn:
        set_due(world, slot, np.inf)
        if world.shared != 0 and producer.free == NONE:
            producer.hungry = 2
            world.hungry += 1
    elif world.pool > 1:
        _expect_draw(world, producer_number)


@inlined
def count_arrived(world: World, producer: Any, now: float) -> None:
    """Count the rows of a producer that have arrived."""
    first = producer.seen
    while producer.seen < producer.rows_end and row_at(world, producer.seen).due <= now:
        producer.seen += 1
    world.lag += producer.seen - first
    world.lag_max = max(world.lag_max, world.lag)


@inlined
def _draw(world: World, producer_number: int) -> Any:
    """Draw a group by weight, from the producer's random numbers."""
    return group_of(world, random_bits(world, producer_number))


@inlined
def _expect_draw(world: World, producer_number: int) -> None:
    """Prefetch the flow of the next drawn tuple."""
    bits = mixed(producer_at(world, producer_number).random + GOLDEN)
    partition = group_at(world, group_of(world, bits)).partition
    fetch_ahead(world.flow_at, FLOW, producer_number * world.partitions + partition)


@inlined
def commit(world: World, held: Any, worker_number: int, answer: int, now: float) -> None:
    """Commit a processed tuple, and acknowledge it."""
    worker_at(world, worker_number).processed += 1
    world.processed += 1
    if world.drawn == 0:
        count_arrived(world, producer_at(world, held.producer), now)
        world.lag -= 1
    world.last = now
    _record(world, 0, now - held.taken)
    if world.batched != 0:
        stamp_at(world, world.batch).at = held.stamp
        world.batch += 1
        leave_batch(world)
    else:
        _record(world, 1, now - held.stamp)
    if world.joins != 0:
        world.answers += answer
        world.pairs += held.pairs
    if world.entries > 0:
        _write_entry(world, held, worker_number, answer, now)
    if world.standby != 0:
        producer: Any = np.int64(held.producer)
        _acknowledge(world, producer, held.partition, now)


@inlined
def leave_batch(world: World) -> None:
    """Count down the tuples of the micro-batch."""
    world.batch_left -= 1
    world.hungry += world.batch_left == 0


@compiled
def end_batch(worlds: Records) -> None:
    """Record the latencies of a micro-batch, at its end."""
    world = worlds[0]
    for at in range(world.batch):
        _record(world, 1, world.now - stamp_at(world, at).at)
    world.batch = 0


@inlined
def _record(world: World, kind: int, latency: float) -> None:
    """Record a latency."""
    sums = latency_at(world, kind)
    sums.count += 1
    sums.sum += latency
    sums.max = max(sums.max, latency)
    bin_at(world, kind * BINS + bin_of(latency)).count += 1


@inlined
def _write_entry(world: World, held: Any, worker_number: int, answer: int, now: float) -> None:
    if world.journalled < world.entries:
        entry = entry_at(world, world.journalled)
        entry.at = now
        entry.worker = worker_number
        entry.producer = held.producer
        entry.partition = held.partition
        entry.group = held.group
        entry.number = held.number
        entry.answer = answer
        world.journalled += 1


@inlined
def _acknowledge(world: World, producer_number: int, partition: int, now: float) -> None:
    """Release the first kept tuple of a partition at its producer."""
    producer = producer_at(world, producer_number)
    kept = kept_at(world, producer_number * world.partitions + partition)
    place = kept.head
    held = pooled_at(world, producer_number * world.places + place)
    kept.head = held.link
    held.link = producer.free
    producer.free = place
    if producer.host != NONE:
        fill_pool(world, producer_number, now)


@inlined
def forget_shed(world: World, worker: Any, now: float) -> None:
    """Release the kept record of a shed tuple, anywhere in its flow."""
    kept = kept_at(world, worker.producer * world.partitions + worker.partition)
    places = worker.producer * world.places
    before: Any = np.int32(NONE)
    place = kept.head
    while place != NONE and pooled_at(world, places + place).number != worker.number:
        before = place
        place = pooled_at(world, places + place).link
    if place == NONE:
        return
    held = pooled_at(world, places + place)
    if before == NONE:
        kept.head = held.link
    else:
        pooled_at(world, places + before).link = held.link
    if kept.tail == place:
        kept.tail = before
    producer = producer_at(world, worker.producer)
    held.link = producer.free
    producer.free = place
    if producer.host != NONE:
        producer_number: Any = np.int64(worker.producer)
        fill_pool(world, producer_number, now)


@inlined
def window_sum(world: World, group_number: int, value: int) -> Any:
    """Sum of the last values of a group, including this one."""
    window = window_at(world, group_number)
    past = past_at(world, group_number * world.window + window.place)
    window.sum += value - past.value
    past.value = value
    window.place += 1
    if window.place == world.window:
        window.place = 0
    return window.sum


@inlined
def aggregate(world: World, worker: Any) -> None:
    """Add the current tuple to the aggregates of its group and part."""
    at: Any = np.int64(worker.group)
    if worker.partition >= world.splits:
        part = worker.partition - world.splits
        at = world.groups + part * world.ranks + rank_at(world, worker.group).place
    total = total_at(world, at)
    total.count += 1
    total.sum += worker.number
    total.least = min(total.least, worker.number)
    total.most = max(total.most, worker.number)


@inlined
def count_matches(world: World, worker: Any) -> None:
    """Count the matches of the current tuple, and update their digest."""
    first = world.joined_first
    row = joined_at(world, worker.number & world.joined_last)
    worker.matches = 0
    worker.pairs = np.uint64(0)
    if row.list == NONE:
        return
    earliest, latest = row.time - world.apart, row.time + world.apart
    at = newest_at(world, row.list ^ 1).at
    while at >= first:
        other = joined_at(world, at & world.joined_last)
        if other.time < earliest:
            return
        if other.time <= latest:
            older, newer = np.uint64(min(at, worker.number)), np.uint64(max(at, worker.number))
            worker.matches += 1
            worker.pairs += mixed(mixed(older * GOLDEN + np.uint64(1)) + newer)
        at = linked_at(world, at & world.joined_last).link


@inlined
def insert_row(world: World, number: int) -> None:
    """Insert a processed row into its list, by rank."""
    row = joined_at(world, number & world.joined_last)
    if row.list == NONE:
        return
    newest = newest_at(world, row.list)
    at = newest.at
    newer: Any = np.int64(NONE)
    while at > number:
        newer = at
        at = linked_at(world, at & world.joined_last).link
    linked_at(world, number & world.joined_last).link = at
    if newer == NONE:
        newest.at = number
    else:
        linked_at(world, newer & world.joined_last).link = number
