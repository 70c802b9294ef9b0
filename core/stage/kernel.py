"""The compiled part of the stage: tuples from producers to consumers, until Python has something to decide.

One event is pending for each consumer (the end of its work, or the arrival that it waits for) and, where tuples come
by rows, one for each producer (its next row). Producers that are never short of tuples need none: they act when a
connection has room again, which is when their consumer takes a tuple.

Throughout, room in a connection means that no tuple of its producer waits for it. So the credit that a consumer gives
back lets exactly one waiting tuple go, and what is then pulled from the source goes into the pool, or straight through
a connection that has room.

Source: Flux, sections 2.3, 2.4, 4 and 5.1.
"""

import math
from typing import Any

import numpy as np

from adapt.core.compiled import compiled, fetch_ahead, inlined, record_at
from adapt.core.stage.arrays import (
    BACKLOG_DONE,
    BIN,
    CONNECTION,
    DUE,
    ENTRY,
    FLOW,
    FREE,
    GROUP,
    IDLE,
    IN_JOB,
    JOB_DONE,
    LATENCY,
    NONE,
    PARTITION,
    PAST,
    POOLED,
    PRODUCER,
    QUEUED,
    QUIESCED,
    REACHED,
    ROW,
    ROWS_WANTED,
    SEGMENT,
    SERVICE,
    SERVING,
    SITE,
    SPILL_FULL,
    SPILLED,
    WINDOW,
    WINNER,
    Records,
    World,
)

BINS_AN_OCTAVE = 32
"""Of a latency histogram."""

LEAST_EXPONENT = -26
"""Latencies below 2^-27 s, 7 ns, are in the first bin."""

OCTAVES = 48
"""Latencies from 2^21 s, 24 days, are in the last bin."""

_DRAWN = -1.0
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)


@compiled
def start(worlds: Records) -> None:
    """Let every producer fill its pool and connections; consumers find the first arrivals by themselves."""
    world = worlds[0]
    for producer in range(world.sites):
        _fill(world, producer, world.now)


@compiled
def refill(worlds: Records) -> None:
    """Let the producers go on that wanted rows, now that some were read."""
    world = worlds[0]
    world.hungry = 0
    for number in range(world.sites):
        producer = _producer(world, number)
        if producer.hungry != 0:
            producer.hungry = 0
            _fill(world, number, world.now)


@compiled
def wake(worlds: Records, site: int) -> None:
    """Let a waiting consumer see now what it is given to do."""
    world = worlds[0]
    if _site(world, site).doing == IDLE:
        _schedule(world, site, world.now)


@compiled
def pause(worlds: Records, partition: int) -> None:
    """Every producer keeps the tuples of a partition in its pool from now on."""
    world = worlds[0]
    record = _partition(world, partition)
    record.stalled = 1
    for producer in range(world.sites):
        if _flow(world, producer * world.partitions + partition).head != NONE:
            _leave(world, producer, partition, record.owner)


@compiled
def restart(worlds: Records, partition: int, owner: int) -> None:
    """Every producer sends the tuples of a paused partition to its owner from now on."""
    world = worlds[0]
    record = _partition(world, partition)
    record.stalled = 0
    record.owner = owner
    now = world.now
    for producer in range(world.sites):
        if _flow(world, producer * world.partitions + partition).head != NONE:
            _join(world, producer, partition, owner)
            connection = _connection(world, owner * world.sites + producer)
            while connection.turn != NONE and connection.count < world.credits:
                _forward(world, producer, owner, now)
        _fill(world, producer, now)


@compiled
def advance(worlds: Records, until: float) -> tuple[int, int]:
    """Let everything happen that happens before `until`, or up to what Python is to see.

    Returns:
        Why it returns, and the site that it is about. `world.now` is the time. The event of that site is still pending:
        it is seen again at the next call.
    """
    world = worlds[0]
    while True:
        if world.hungry > 0:
            return ROWS_WANTED, NONE
        slot = _winner(world, 1).slot
        now = _due(world, slot).at
        if now >= until:
            world.now = until
            return REACHED, NONE
        if world.on_disk > 0 and world.spill_free == NONE:
            return SPILL_FULL, NONE
        world.now = now
        if slot >= world.sites:
            _fill(world, slot - world.sites, now)
            continue
        site = _site(world, slot)
        if site.doing == SERVING:
            _finish(world, slot, now)
            site.doing = FREE
            if site.quiesced != 0:
                site.quiesced = 0
                return QUIESCED, slot
        elif site.doing == IN_JOB:
            site.busy += now - site.since
            site.doing = FREE
            return JOB_DONE, slot
        elif site.doing == IDLE:
            waited = now - site.since
            site.idle += waited
            site.debt = max(0.0, site.debt - waited)
            site.doing = FREE
        if site.backlog != NONE and _partition(world, site.backlog).spill_head == NONE and site.job == 0:
            site.backlog = NONE
            return BACKLOG_DONE, slot
        _begin(world, slot, now)


@inlined
def _begin(world: World, site_number: int, now: float) -> None:
    """A free consumer chooses its next work: a job, spilled input that it is to process, input, or to wait."""
    site = _site(world, site_number)
    site.since = now
    if site.job != 0:
        site.job = 0
        site.doing = IN_JOB
        _schedule(world, site_number, _done(world, site, now + site.job_io, site.job_cpu))
        return
    if site.backlog != NONE:
        _take_spilled(world, site_number, now)
        return
    first = site_number * world.sites
    producer = site.poll
    soonest = np.inf
    for _ in range(world.sites):
        connection = _connection(world, first + producer)
        if connection.count > 0:
            at = _queued(world, (first + producer) * world.credits + connection.first).at
            if at <= now:
                _take(world, site_number, producer, now)
                return
            soonest = min(soonest, at)
        producer += 1
        if producer == world.sites:
            producer = 0
    site.doing = IDLE
    _schedule(world, site_number, soonest)


@inlined
def _take(world: World, site_number: int, producer: int, now: float) -> None:
    """A consumer takes the next tuple of a connection, and the producer may send one."""
    site = _site(world, site_number)
    number = site_number * world.sites + producer
    connection = _connection(world, number)
    taken = _queued(world, number * world.credits + connection.first)
    site.group = taken.group
    site.partition = taken.partition
    site.producer = producer
    site.number = taken.number
    site.stamp = taken.stamp
    site.cost = taken.cost
    site.taken = now
    connection.first += 1
    if connection.first == world.credits:
        connection.first = 0
    connection.count -= 1
    site.poll = producer + 1
    if site.poll == world.sites:
        site.poll = 0
    if connection.ack > 0:
        connection.ack -= 1
        if connection.ack == 0:
            site.acks -= 1
            if site.acks == 0:
                site.quiesced = 1
    site.doing = SERVING
    if _partition(world, site.partition).on_disk != 0:
        site.spilling = 1
        _schedule(world, site_number, _done(world, site, now + world.spill, 0.0))
    else:
        site.spilling = 0
        _serve(world, site_number, now)
    if connection.turn != NONE:
        _forward(world, producer, site_number, now)
        _fill(world, producer, now)
    elif world.anywhere and _producer(world, producer).held > 0:
        _forward_anywhere(world, producer, site_number, now)
        _fill(world, producer, now)
    if world.pool > 1:
        _expect_take(world, site_number)


@inlined
def _expect_take(world: World, site_number: int) -> None:
    """Ask for what a consumer takes next but one, and for what is sent in the place of what it takes next.

    By then many others have taken a tuple, so that this would have to come from memory; which it is, is known now.
    """
    producer = _site(world, site_number).poll
    connection = _connection(world, site_number * world.sites + producer)
    if connection.turn != NONE:
        flow = _flow(world, producer * world.partitions + connection.turn)
        fetch_ahead(world.pooled_at, POOLED, producer * world.pool + flow.head)
    producer += 1
    if producer == world.sites:
        producer = 0
    number = site_number * world.sites + producer
    connection = _connection(world, number)
    fetch_ahead(world.queued_at, QUEUED, number * world.credits + connection.first)
    fetch_ahead(world.flow_at, FLOW, producer * world.partitions + connection.turn)


@inlined
def _take_spilled(world: World, site_number: int, now: float) -> None:
    """A consumer takes the next spilled tuple of the partition whose backlog it processes."""
    site = _site(world, site_number)
    partition = _partition(world, site.backlog)
    place = partition.spill_head
    taken = _spilled(world, place)
    partition.spill_head = taken.link
    partition.spilled -= 1
    partition.in_flight += 1
    taken.link = world.spill_free
    world.spill_free = place
    site.group = taken.group
    site.partition = site.backlog
    site.producer = taken.producer
    site.number = taken.number
    site.stamp = taken.stamp
    site.cost = taken.cost
    site.taken = taken.taken
    site.spilling = 0
    site.doing = SERVING
    _serve(world, site_number, now)


@inlined
def _serve(world: World, site_number: int, now: float) -> None:
    """Begin to process the tuple at hand, and pay what the site's producer has used."""
    site = _site(world, site_number)
    cost = site.cost
    if cost < 0:
        cost = _service(world, site.cursor).seconds
        site.cursor = (site.cursor + 1) & (world.services - 1)
    work = cost + site.debt
    site.debt = 0.0
    _schedule(world, site_number, _done(world, site, now, work))


@inlined
def _finish(world: World, site_number: int, now: float) -> None:
    """The tuple at hand is processed, or written to the spill."""
    site = _site(world, site_number)
    partition = _partition(world, site.partition)
    partition.in_flight -= 1
    site.busy += now - site.since
    if site.spilling != 0:
        _spill(world, site_number)
        return
    site.processed += 1
    partition.processed += 1
    world.processed += 1
    world.last = now
    _record(world, 0, now - site.taken)
    _record(world, 1, now - site.stamp)
    answer: Any = np.int64(0)
    if world.window > 0:
        answer = _answer(world, site.group, site.number)
        partition.digest = partition.digest * np.int64(6364136223846793005) + answer
    if world.entries > 0:
        _write_entry(world, site_number, answer, now)


@inlined
def _answer(world: World, group_number: int, value: int) -> Any:
    """The sum of a group's last values, this one included."""
    window = _window(world, group_number)
    past = _past(world, group_number * world.window + window.place)
    window.sum += value - past.value
    past.value = value
    window.place += 1
    if window.place == world.window:
        window.place = 0
    return window.sum


@inlined
def _write_entry(world: World, site_number: int, answer: int, now: float) -> None:
    if world.journalled < world.entries:
        site = _site(world, site_number)
        entry = _entry(world, world.journalled)
        entry.at = now
        entry.site = site_number
        entry.producer = site.producer
        entry.partition = site.partition
        entry.group = site.group
        entry.number = site.number
        entry.answer = answer
        world.journalled += 1


@inlined
def _spill(world: World, site_number: int) -> None:
    """Append the tuple at hand to what is spilled of its partition."""
    site = _site(world, site_number)
    partition = _partition(world, site.partition)
    place = world.spill_free
    written = _spilled(world, place)
    world.spill_free = written.link
    _write(written, site.group, site.number, site.stamp, site.cost)
    written.producer = site.producer
    written.taken = site.taken
    written.link = NONE
    if partition.spill_head == NONE:
        partition.spill_head = place
    else:
        _spilled(world, partition.spill_tail).link = place
    partition.spill_tail = place
    partition.spilled += 1


@inlined
def _record(world: World, kind: int, latency: float) -> None:
    """Count a latency: where it lies in its octave, in equal bins."""
    sums = _latency(world, kind)
    sums.count += 1
    sums.sum += latency
    sums.max = max(sums.max, latency)
    bins = OCTAVES * BINS_AN_OCTAVE
    at = 0
    if latency > 0:
        mantissa, exponent = math.frexp(latency)
        at = (exponent - LEAST_EXPONENT) * BINS_AN_OCTAVE + int((mantissa - 0.5) * (2 * BINS_AN_OCTAVE))
    _bin(world, kind * bins + min(max(at, 0), bins - 1)).count += 1


@inlined
def _done(world: World, site: Any, begin: float, work: float) -> Any:
    """When work is done that begins at a time, on a CPU that is shared or slowed as its segments say.

    In a segment, cycles of `run` seconds for the operator and then `burst` for others follow each other from its start.
    """
    speed = _segment(world, site.segment).speed
    if site.segment + 1 == site.segments_end and _segment(world, site.segment).burst == 0 and speed == 1:
        return begin + work
    at = begin
    while True:
        segment = _segment(world, site.segment)
        end = np.inf
        if site.segment + 1 < site.segments_end:
            end = _segment(world, site.segment + 1).start
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
        site.segment += 1


@inlined
def _had(segment: Any, at: float) -> Any:
    """Seconds of CPU that the operator could have had from the start of a segment until `at`."""
    passed = at - segment.start
    if segment.burst == 0:
        return passed
    cycles = math.floor(passed / (segment.run + segment.burst))
    return cycles * segment.run + min(passed - cycles * (segment.run + segment.burst), segment.run)


@inlined
def _fill(world: World, producer_number: int, now: float) -> None:
    """A producer pulls tuples as long as its pool has room, and there are some."""
    producer = _producer(world, producer_number)
    slot = world.sites + producer_number
    while producer.held < world.pool:
        if world.drawn:
            group = _draw(world, producer_number)
            number = producer.generated
            stamp = now
            cost = _DRAWN
        else:
            if producer.row == producer.rows_end:
                if world.horizon <= now:
                    producer.hungry = 1
                    world.hungry += 1
                _schedule(world, slot, world.horizon if world.horizon > now else np.inf)
                return
            row = _row(world, producer.row)
            if row.due > now:
                _schedule(world, slot, row.due)
                return
            producer.row += 1
            group = row.group
            number = row.number
            stamp = row.due
            cost = row.cost
            if stamp == -np.inf:
                stamp = now
            if now > stamp:
                producer.lag = max(producer.lag, now - stamp)
                producer.behind += now - max(stamp, producer.behind_until)
                producer.behind_until = now
        producer.generated += 1
        _site(world, producer_number).debt += world.produce
        _route(world, producer_number, group, number, stamp, cost, now)
    if not world.drawn:
        _schedule(world, slot, np.inf)
    elif world.pool > 1:
        _expect_draw(world, producer_number)


@inlined
def _expect_draw(world: World, producer_number: int) -> None:
    """Ask for the flow of the tuple that a producer draws next."""
    bits = _mixed(_producer(world, producer_number).random + _GOLDEN)
    partition = _group(world, _group_of(world, bits)).partition
    fetch_ahead(world.flow_at, FLOW, producer_number * world.partitions + partition)


@inlined
def _draw(world: World, producer_number: int) -> Any:
    """A group by its share, of the producer's own random numbers."""
    return _group_of(world, _bits(world, producer_number))


@inlined
def _group_of(world: World, bits: Any) -> Any:
    """The group that random bits choose, by the alias table."""
    at: Any = np.int64(((bits >> np.uint64(32)) * np.uint64(world.groups)) >> np.uint64(32))
    group = _group(world, at)
    if np.int64(bits & _LOW) >= group.threshold:
        return np.int64(group.alias)
    return at


@inlined
def _bits(world: World, producer_number: int) -> Any:
    """The next random bits of a producer: splitmix64."""
    producer = _producer(world, producer_number)
    producer.random += _GOLDEN
    return _mixed(producer.random)


@inlined
def _mixed(bits: Any) -> Any:
    """Bits that look random, of a counter."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX2
    return bits ^ (bits >> np.uint64(31))


@inlined
def _route(
    world: World,
    producer_number: int,
    group: int,
    number: int,
    stamp: float,
    cost: float,
    now: float,
) -> None:
    """A new tuple goes through its connection if that has room, else into the pool."""
    partition_number = _group(world, group).partition
    partition = _partition(world, partition_number)
    owner: Any = np.int64(partition.owner)
    if world.anywhere:
        owner = _emptiest(world, producer_number)
        free = owner != NONE
    else:
        free = (
            partition.stalled == 0 and _connection(world, owner * world.sites + producer_number).count < world.credits
        )
    if free:
        sent = _place(world, producer_number, owner, partition_number, now)
        _write(sent, group, number, stamp, cost)
        return
    producer = _producer(world, producer_number)
    place = producer.free
    held = _pooled(world, producer_number * world.pool + place)
    producer.free = held.link
    producer.held += 1
    _write(held, group, number, stamp, cost)
    held.link = NONE
    listed = 0 if world.anywhere else partition_number
    flow = _flow(world, producer_number * world.partitions + listed)
    if flow.head == NONE:
        flow.head = place
        if partition.stalled == 0 and not world.anywhere:
            _join(world, producer_number, partition_number, owner)
    else:
        _pooled(world, producer_number * world.pool + flow.tail).link = place
    flow.tail = place


@inlined
def _emptiest(world: World, producer_number: int) -> Any:
    """A site drawn by the room in the connection to it, or none."""
    room = 0
    for site in range(world.sites):
        room += world.credits - _connection(world, site * world.sites + producer_number).count
    if room == 0:
        return np.int64(NONE)
    left: Any = np.int64((_bits(world, producer_number) >> np.uint64(32)) * np.uint64(room) >> np.uint64(32))
    drawn: Any = np.int64(0)
    while True:
        left -= world.credits - _connection(world, drawn * world.sites + producer_number).count
        if left < 0:
            return drawn
        drawn += 1


@inlined
def _write(record: Any, group: int, number: int, stamp: float, cost: float) -> None:
    record.group = group
    record.number = number
    record.stamp = stamp
    record.cost = cost


@inlined
def _place(world: World, producer: int, site: int, partition: int, now: float) -> Any:
    """The place in a connection for the tuple that is sent now; a waiting consumer may have it when it arrives."""
    number = site * world.sites + producer
    connection = _connection(world, number)
    at = connection.first + connection.count
    if at >= world.credits:
        at -= world.credits
    connection.count += 1
    _partition(world, partition).in_flight += 1
    arrival = now + world.latency
    if _site(world, site).doing == IDLE and arrival < _due(world, site).at:
        _schedule(world, site, arrival)
    place = _queued(world, number * world.credits + at)
    place.partition = partition
    place.at = arrival
    return place


@inlined
def _forward(world: World, producer_number: int, site: int, now: float) -> None:
    """Send the tuple whose turn it is from the pool through a connection with room."""
    connection = _connection(world, site * world.sites + producer_number)
    partition = connection.turn
    flow = _flow(world, producer_number * world.partitions + partition)
    place = flow.head
    held = _pooled(world, producer_number * world.pool + place)
    flow.head = held.link
    connection.turn = flow.after
    if held.link != NONE:
        _join(world, producer_number, partition, site)
    _send(world, producer_number, site, partition, place, now)


@inlined
def _forward_anywhere(world: World, producer_number: int, site: int, now: float) -> None:
    """Send the oldest tuple of the pool through a connection with room."""
    flow = _flow(world, producer_number * world.partitions)
    place = flow.head
    held = _pooled(world, producer_number * world.pool + place)
    flow.head = held.link
    _send(world, producer_number, site, _group(world, held.group).partition, place, now)


@inlined
def _send(world: World, producer_number: int, site: int, partition: int, place: int, now: float) -> None:
    """The tuple at a place of the pool goes, and its place is free."""
    producer = _producer(world, producer_number)
    held = _pooled(world, producer_number * world.pool + place)
    sent = _place(world, producer_number, site, partition, now)
    _write(sent, held.group, held.number, held.stamp, held.cost)
    held.link = producer.free
    producer.free = place
    producer.held -= 1


@inlined
def _join(world: World, producer: int, partition: int, site: int) -> None:
    """A partition waits for a connection, behind all that wait already."""
    flows = producer * world.partitions
    connection = _connection(world, site * world.sites + producer)
    _flow(world, flows + partition).after = NONE
    if connection.turn == NONE:
        connection.turn = partition
    else:
        _flow(world, flows + connection.last).after = partition
    connection.last = partition


@inlined
def _leave(world: World, producer: int, partition: int, site: int) -> None:
    """A partition waits for a connection no longer, wherever it stands among those that do."""
    flows = producer * world.partitions
    connection = _connection(world, site * world.sites + producer)
    following = _flow(world, flows + partition).after
    before: Any = np.int32(NONE)
    at = connection.turn
    while at != partition:
        before = at
        at = _flow(world, flows + at).after
    if before == NONE:
        connection.turn = following
    else:
        _flow(world, flows + before).after = following
    if connection.last == partition:
        connection.last = before


@inlined
def _schedule(world: World, slot: int, at: float) -> None:
    """Set when a slot has its next event, and play its matches of the tournament again."""
    _due(world, slot).at = at
    match = (world.slots + slot) >> 1
    winner: Any = slot & ~1
    if _due(world, winner + 1).at < _due(world, winner).at:
        winner += 1
    _winner(world, match).slot = winner
    at = _due(world, winner).at
    while match > 1:
        other: Any = np.int64(_winner(world, match ^ 1).slot)
        other_at = _due(world, other).at
        match >>= 1
        if other_at < at or (other_at == at and other < winner):
            winner = other
            at = other_at
        _winner(world, match).slot = winner


@inlined
def _site(world: World, number: int) -> Any:
    """A site and its consumer."""
    return record_at(world.site_at, SITE, number)


@inlined
def _producer(world: World, number: int) -> Any:
    """The producer of a site."""
    return record_at(world.producer_at, PRODUCER, number)


@inlined
def _connection(world: World, number: int) -> Any:
    """The connection of number site * n + producer."""
    return record_at(world.connection_at, CONNECTION, number)


@inlined
def _queued(world: World, number: int) -> Any:
    """A place in a connection."""
    return record_at(world.queued_at, QUEUED, number)


@inlined
def _flow(world: World, number: int) -> Any:
    """The flow of number producer * partitions + partition."""
    return record_at(world.flow_at, FLOW, number)


@inlined
def _pooled(world: World, number: int) -> Any:
    """A place in a pool."""
    return record_at(world.pooled_at, POOLED, number)


@inlined
def _partition(world: World, number: int) -> Any:
    """A partition."""
    return record_at(world.partition_at, PARTITION, number)


@inlined
def _group(world: World, number: int) -> Any:
    """A group."""
    return record_at(world.group_at, GROUP, number)


@inlined
def _window(world: World, number: int) -> Any:
    """The window of a group."""
    return record_at(world.window_at, WINDOW, number)


@inlined
def _past(world: World, number: int) -> Any:
    """A value in the window of a group."""
    return record_at(world.past_at, PAST, number)


@inlined
def _segment(world: World, number: int) -> Any:
    """A segment of the CPU of a site."""
    return record_at(world.segment_at, SEGMENT, number)


@inlined
def _row(world: World, number: int) -> Any:
    """A row of the stream."""
    return record_at(world.row_at, ROW, number)


@inlined
def _spilled(world: World, number: int) -> Any:
    """A place in the spill."""
    return record_at(world.spilled_at, SPILLED, number)


@inlined
def _entry(world: World, number: int) -> Any:
    """An entry of the journal."""
    return record_at(world.entry_at, ENTRY, number)


@inlined
def _latency(world: World, number: int) -> Any:
    """The sums of one kind of latency."""
    return record_at(world.latency_at, LATENCY, number)


@inlined
def _bin(world: World, number: int) -> Any:
    """A bin of the histograms."""
    return record_at(world.bin_at, BIN, number)


@inlined
def _service(world: World, number: int) -> Any:
    """A drawn service time."""
    return record_at(world.service_at, SERVICE, number)


@inlined
def _due(world: World, number: int) -> Any:
    """The next event of a slot."""
    return record_at(world.due_at, DUE, number)


@inlined
def _winner(world: World, number: int) -> Any:
    """A match of the tournament."""
    return record_at(world.winner_at, WINNER, number)
