"""Commit of processed tuples: answers, counts and acknowledgements."""

from typing import Any

import numpy as np

from adapt.core.compiled import compiled, inlined
from adapt.core.histogram import BINS, bin_of
from adapt.core.random_bits import GOLDEN, mixed
from adapt.core.stage.engine.kernel.routing import count_arrived, fill_pool
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.codes import NONE
from adapt.core.stage.records.finding import (
    bin_at,
    entry_at,
    joined_at,
    kept_at,
    latency_at,
    linked_at,
    newest_at,
    past_at,
    pooled_at,
    producer_at,
    rank_at,
    stamp_at,
    total_at,
    window_at,
    worker_at,
)
from adapt.core.stage.records.world import World


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
