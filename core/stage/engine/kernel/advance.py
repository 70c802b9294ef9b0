"""Compiled event loop of a stage.

One event is pending per consumer (the end of its work, or the arrival that it waits for) and, if tuples come from rows,
one per producer (its next row). Producers of a random source need none: they act when a connection has room again,
which is when their consumer takes a tuple.

At any time, a connection with room has no waiting tuples. So a returned credit releases exactly one waiting tuple, and
the tuple then pulled from the source goes into the buffer, or straight through a connection with room.

Source: Flux, sections 2.3, 2.4, 4 and 5.1."""

import math
from typing import Any

import numpy as np

from adapt.core.compiled import compiled, fetch_ahead, inlined
from adapt.core.random_bits import GOLDEN, mixed, uniform
from adapt.core.stage.engine.kernel.connections import (
    forward_anywhere,
    leave_channel,
    leave_queue,
    pass_acknowledgement,
    send_waiting,
    set_due,
    take_in_hand,
)
from adapt.core.stage.engine.kernel.growth import grow, spill_tuple, take_spilled
from adapt.core.stage.engine.kernel.routing import (
    aggregate,
    commit,
    count_matches,
    fill_pool,
    forget_shed,
    insert_row,
    leave_batch,
    window_sum,
)
from adapt.core.stage.engine.kernel.standby import finish_mirrored, send_to_twin, take_mirrored
from adapt.core.stage.records.arrays import (
    BACKLOG_DONE,
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
    channel_at,
    connection_at,
    due_at,
    flow_at,
    held_at,
    line_at,
    mirrored_at,
    pair_at,
    part_at,
    partition_at,
    pause_at,
    producer_at,
    queued_at,
    refusal_at,
    segment_at,
    service_at,
    winner_at,
    worker_at,
)
from adapt.core.stage.records.world import FLOW, JOINED, LIVE, POOLED, QUEUED, World


@inlined
def done_after_pauses(world: World, worker_number: int, worker: Any, begin: float, work: float) -> Any:
    """End time of work that pauses of its worker interrupt."""
    done = done_at(world, worker, begin, work)
    while worker.pause_from < done:
        pause = pause_at(world, worker_number * world.pauses + worker.paused)
        over = worker.pause_from + pause.lasts
        if over > begin:
            done += over - max(begin, worker.pause_from)
        worker.pause_from = over + pause.gap
        worker.paused += 1
        if worker.paused == world.pauses:
            worker.paused = 0
    return done


@inlined
def done_at(world: World, worker: Any, begin: float, work: float) -> Any:
    """End time of work on a CPU with these segments.

    A segment consists of cycles: `run` seconds for the operator, then `burst` seconds for others.
    """
    speed = segment_at(world, worker.segment).speed
    if worker.segment + 1 == worker.segments_end and segment_at(world, worker.segment).burst == 0 and speed == 1:
        return begin + work
    at = begin
    while True:
        segment = segment_at(world, worker.segment)
        end = np.inf
        if worker.segment + 1 < worker.segments_end:
            end = segment_at(world, worker.segment + 1).start
        if at < end:
            if segment.run > 0 and segment.speed > 0:
                target = _had(segment, at) + work / segment.speed
                done = segment.start + target
                if segment.burst > 0:
                    cycle = max(0.0, math.ceil(target / segment.run) - 1.0)
                    done += cycle * segment.burst
                done = max(done, at)
                if done <= end:
                    return done
                work -= (_had(segment, end) - _had(segment, at)) * segment.speed
                work = max(work, 0.0)
            elif end == np.inf:
                return np.inf
            at = end
        worker.segment += 1


@inlined
def _had(segment: Any, at: float) -> Any:
    """CPU seconds available to the operator from the start of a segment until `at`."""
    passed = at - segment.start
    if segment.burst == 0:
        return passed
    cycles = math.floor(passed / (segment.run + segment.burst))
    return cycles * segment.run + min(passed - cycles * (segment.run + segment.burst), segment.run)


@inlined
def sheds(world: World, worker_number: int, now: float) -> Any:
    """Shed the current tuple at random, or buffer it."""
    worker = worker_at(world, worker_number)
    first = worker_number * world.hold
    while worker.held > 0 and held_at(world, first + worker.held_first).since + world.held_for <= now:
        worker.held -= 1
        worker.held_first += 1
        if worker.held_first == world.hold:
            worker.held_first = 0
    bits = mixed(mixed(world.draws + np.uint64(worker.producer)) + np.uint64(worker.number) * GOLDEN)
    if uniform(bits) < part_at(world, worker.held).shed:
        return True
    place = worker.held_first + worker.held
    if place >= world.hold:
        place -= world.hold
    kept = held_at(world, first + place)
    kept.since = now
    kept.partition = worker.partition
    worker.held += 1
    worker.held_most = max(worker.held_most, worker.held)
    return False


@inlined
def count_shed(world: World, worker: Any, now: float) -> None:
    """Count a shed tuple, by worker and by time slot."""
    worker.refused = 0
    worker.shed += 1
    world.lag -= 1
    if world.batched != 0:
        leave_batch(world)
    if world.refusals > 0:
        at = min(int((now - world.watched_from) / world.refusal_s), world.refusals - 1)
        refusal_at(world, at).count += 1


@inlined
def begin_work(world: World, worker_number: int, now: float) -> None:
    """Choose the next work of a free consumer, or wait."""
    worker = worker_at(world, worker_number)
    worker.since = now
    if worker.job != 0:
        worker.job = 0
        worker.doing = IN_JOB
        due = done_after_pauses(world, worker_number, worker, now + worker.job_io, worker.job_cpu)
        set_due(world, worker_number, due)
        return
    if worker.backlog != NONE:
        take_spilled(world, worker)
        _serve(world, worker_number, now)
        return
    soonest = np.inf
    if world.standby != 0:
        place = line_at(world, worker_number).head
        if place != NONE:
            entry = mirrored_at(world, place)
            if entry.at <= now:
                take_mirrored(worker, entry)
                worker.mirrored = 1
                _serve(world, worker_number, now)
                return
            soonest = entry.at
    first = worker_number * world.workers
    producer: Any = np.int64(worker.poll)
    for _ in range(world.workers):
        connection = connection_at(world, first + producer)
        if connection.count > 0 and (world.barriers == 0 or channel_at(world, first + producer).stopped == 0):
            at = queued_at(world, (first + producer) * world.credits + connection.first).at
            if at <= now:
                _take(world, worker_number, producer, now)
                return
            soonest = min(soonest, at)
        producer += 1
        if producer == world.workers:
            producer = 0
    worker.doing = IDLE
    set_due(world, worker_number, soonest)


@inlined
def _take(world: World, worker_number: int, producer: int, now: float) -> None:
    """Take the next tuple of a connection, and return the credit."""
    worker = worker_at(world, worker_number)
    number = worker_number * world.workers + producer
    connection = connection_at(world, number)
    taken = queued_at(world, number * world.credits + connection.first)
    take_in_hand(worker, taken, taken.partition, producer, now)
    leave_queue(world, connection)
    worker.poll = producer + 1
    if worker.poll == world.workers:
        worker.poll = 0
    if world.lines != 0:
        _take_in_order(world, worker_number, producer)
    pass_acknowledgement(worker, connection)
    worker.doing = SERVING
    if world.ranked != 0:
        fetch_ahead(world.joined_at, JOINED, worker.number & world.joined_last)
        fetch_ahead(world.live_at, LIVE, worker.group)
    if world.hold > 0 and sheds(world, worker_number, now):
        worker.refused = 1
        set_due(world, worker_number, now)
    elif partition_at(world, worker.partition).on_disk != 0:
        worker.spilling = 1
        set_due(world, worker_number, done_at(world, worker, now + worker.spill, 0.0))
    else:
        _serve(world, worker_number, now)
    if connection.owed == 0:
        if connection.turn != NONE:
            send_waiting(world, producer, worker_number, now)
            fill_pool(world, producer, now)
        elif world.anywhere and producer_at(world, producer).held > 0:
            forward_anywhere(world, producer, worker_number, now)
            fill_pool(world, producer, now)
    if world.pool > 1:
        _expect_take(world, worker_number)


@inlined
def _take_in_order(world: World, worker_number: int, producer: int) -> None:
    """Count a tuple for its fetch and its barrier, and the CPU to read it."""
    worker = worker_at(world, worker_number)
    number = worker_number * world.workers + producer
    worker.debt += world.read
    if world.barriers != 0:
        leave_channel(world, worker_number, producer, 1)
    channel, connection = channel_at(world, number), connection_at(world, number)
    channel.fetched += 1
    if channel.fetched < world.fetch and (connection.count > 0 or connection.turn != NONE):
        worker.poll = producer
    else:
        channel.fetched = 0


@inlined
def _serve(world: World, worker_number: int, now: float) -> None:
    """Start to process the current tuple, after the CPU debt of the worker's producer."""
    worker = worker_at(world, worker_number)
    worker.doing = SERVING
    worker.spilling = 0
    cost = worker.cost
    if cost < 0:
        cost = service_at(world, worker.cursor).seconds
        worker.cursor = (worker.cursor + 1) & (world.services - 1)
    if world.joins != 0:
        if worker.mirrored == 0:
            count_matches(world, worker)
        cost += worker.matches * world.match
    work = cost + worker.debt
    worker.debt = 0.0
    set_due(world, worker_number, done_after_pauses(world, worker_number, worker, now, work))


@inlined
def finish_tuple(world: World, worker_number: int, now: float) -> None:
    """Finish the current tuple: processed, or spilled."""
    worker = worker_at(world, worker_number)
    partition = partition_at(world, worker.partition)
    worker.busy += now - worker.since
    twin: Any = np.int32(NONE)
    if world.standby != 0:
        if worker.mirrored != 0:
            finish_mirrored(world, worker_number, now)
            return
        twin = pair_at(world, worker.partition).twin
    partition.in_flight -= 1
    if worker.refused != 0:
        count_shed(world, worker, now)
        if world.standby != 0:
            forget_shed(world, worker, now)
        return
    if worker.spilling != 0:
        spill_tuple(world, worker, partition)
        return
    partition.processed += 1
    answer: Any = np.int64(0)
    if world.window > 0:
        answer = window_sum(world, worker.group, worker.number)
        partition.digest = partition.digest * np.int64(6364136223846793005) + answer
    elif world.joins != 0:
        answer = worker.matches
        insert_row(world, worker.number)
    elif world.splits != 0:
        aggregate(world, worker)
    if world.grows != 0:
        grow(world, worker)
    if twin == NONE:
        commit(world, worker, worker_number, answer, now)
    else:
        send_to_twin(world, worker_number, twin, answer, now)


@inlined
def _expect_take(world: World, worker_number: int) -> None:
    """Prefetch the tuple after next, and the one sent in place of the next.

    Otherwise it would have to come from memory then.
    """
    producer = worker_at(world, worker_number).poll
    connection = connection_at(world, worker_number * world.workers + producer)
    if connection.turn != NONE:
        flow = flow_at(world, producer * world.partitions + connection.turn)
        fetch_ahead(world.pooled_at, POOLED, producer * world.places + flow.head)
    producer += 1
    if producer == world.workers:
        producer = 0
    number = worker_number * world.workers + producer
    connection = connection_at(world, number)
    fetch_ahead(world.queued_at, QUEUED, number * world.credits + connection.first)
    fetch_ahead(world.flow_at, FLOW, producer * world.partitions + connection.turn)


@compiled
def advance(worlds: Records, until: float) -> tuple[int, int]:
    """Simulate until `until`, or until Python must decide.

    Returns:
        Return code and worker. `world.now` is the time. The event of that worker stays pending for the next call.
    """
    world = worlds[0]
    while True:
        if world.hungry > 0:
            return ROWS_WANTED, NONE
        slot: Any = np.int64(winner_at(world, 1).slot)  # kernels are compiled once per integer type
        now = due_at(world, slot).at
        if now >= until:
            world.now = until
            return REACHED, NONE
        if world.on_disk > 0 and world.spill_free == NONE:
            return SPILL_FULL, NONE
        world.now = now
        if slot >= world.workers:
            fill_pool(world, slot - world.workers, now)
            continue
        worker = worker_at(world, slot)
        if worker.doing == SERVING:
            finish_tuple(world, slot, now)
            worker.doing = FREE
            if worker.quiesced != 0:
                worker.quiesced = 0
                return QUIESCED, slot
        elif worker.doing == IN_JOB:
            worker.busy += now - worker.since
            worker.doing = FREE
            return JOB_DONE, slot
        elif worker.doing == IDLE:
            waited = now - worker.since
            worker.idle += waited
            worker.debt = max(0.0, worker.debt - waited)
            worker.doing = FREE
        if worker.full == 1:
            worker.full = 2
            return GROWN, slot
        if worker.backlog != NONE and partition_at(world, worker.backlog).spill_head == NONE and worker.job == 0:
            worker.backlog = NONE
            return BACKLOG_DONE, slot
        begin_work(world, slot, now)
