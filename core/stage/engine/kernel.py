"""The compiled part of the stage: tuples from producers to consumers, until Python has something to decide.

One event is pending for each consumer (the end of its work, or the arrival that it waits for) and, where tuples come
by rows, one for each producer (its next row). Producers that are never short of tuples need none: they act when a
connection has room again, which is when their consumer takes a tuple.

Throughout, room in a connection means that no tuple of its producer waits for it. So the credit that a consumer gives
back lets exactly one waiting tuple go, and what is then pulled from the source goes into the pool, or straight through
a connection that has room.

Two stages in a row, whose consumers share the CPU of their site, are two worlds that are advanced together: what is
made of a tuple of the first is routed by the producer of the second at the same site.

Source: Flux, sections 2.3, 2.4, 4 and 5.1.
"""

import math
from typing import Any

import numpy as np

from adapt.core.compiled import compiled, fetch_ahead, inlined, record_at
from adapt.core.histogram import BINS, bin_of
from adapt.core.random_bits import GOLDEN, MIX1, mixed, uniform
from adapt.core.stage.records.arrays import (
    BACKLOG_DONE,
    BIN,
    BLOCKED,
    CONNECTION,
    CPU,
    DUE,
    ENTRY,
    FLOW,
    FREE,
    GROUP,
    HELD,
    IDLE,
    IN_JOB,
    JOB_DONE,
    JOINED,
    KEPT,
    LATENCY,
    LINE,
    MIRRORED,
    NEWEST,
    NONE,
    PAIR,
    PART,
    PARTITION,
    PAST,
    POOLED,
    PRODUCER,
    QUEUED,
    QUIESCED,
    REACHED,
    REFUSAL,
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

_DRAWN = -1.0
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
        halted = _producer(world, producer).host == NONE
        if not halted and _flow(world, producer * world.partitions + partition).head != NONE:
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
        if _producer(world, producer).host == NONE:
            continue
        if _flow(world, producer * world.partitions + partition).head != NONE:
            _join(world, producer, partition, owner)
            _drain(world, producer, owner, now)
        _fill(world, producer, now)


@compiled
def schedule(worlds: Records, slot: int, at: float) -> None:
    """Set when a site, or the producer n slots further on, has its next event."""
    _schedule(worlds[0], slot, at)


@compiled
def halt(worlds: Records, producer: int) -> None:
    """The input of a producer is read nowhere from now on; what it holds waits for no connection."""
    world = worlds[0]
    record = _producer(world, producer)
    record.host = NONE
    record.hungry = 0
    for site in range(world.sites):
        _connection(world, site * world.sites + producer).turn = NONE
    _schedule(world, world.sites + producer, np.inf)


@compiled
def resume(worlds: Records, producer: int, host: int) -> None:
    """A site reads the input of a halted producer from now on, first what was read and is still to be sent."""
    world = worlds[0]
    record = _producer(world, producer)
    record.host = host
    _site(world, host).debt += world.produce * record.held
    for partition in range(world.partitions):
        if _flow(world, producer * world.partitions + partition).head != NONE:
            waiting = _partition(world, partition)
            if waiting.stalled == 0:
                _join(world, producer, partition, waiting.owner)
    for site in range(world.sites):
        _drain(world, producer, site, world.now)
    _fill(world, producer, world.now)


@compiled
def put_back(worlds: Records, partition: int) -> int:
    """What was sent of a partition, and neither acknowledged nor received by its twin, is to be sent again, in order.

    The partition waits for no connection.

    Returns:
        How many tuples.
    """
    world = worlds[0]
    sent = 0
    for producer_number in range(world.sites):
        kept = _kept(world, producer_number * world.partitions + partition)
        flow = _flow(world, producer_number * world.partitions + partition)
        places = producer_number * world.places
        last: Any = np.int32(NONE)
        first = kept.head
        for _ in range(kept.pending):
            last = first
            first = _pooled(world, places + first).link
        if first == NONE:
            continue
        at = first
        while at != NONE:
            sent += 1
            _producer(world, producer_number).held += 1
            at = _pooled(world, places + at).link
        _pooled(world, places + kept.tail).link = flow.head
        if flow.head == NONE:
            flow.tail = kept.tail
        flow.head = first
        kept.tail = last
        if last == NONE:
            kept.head = NONE
        else:
            _pooled(world, places + last).link = NONE
    return sent


@compiled
def answer_for(worlds: Records, dead: int) -> None:
    """Take all out of the line of a dead site; owners that are to answer for it commit what they have processed."""
    world = worlds[0]
    line = _line(world, dead)
    while line.head != NONE:
        place = line.head
        entry = _mirrored(world, place)
        if _pair(world, entry.partition).answer_for != 0:
            _kept(world, entry.producer * world.partitions + entry.partition).pending -= 1
            _take_up(world, dead, entry)
            _commit(world, dead, _partition(world, entry.partition).owner, entry.answer, world.now)
        line.head = entry.link
        entry.link = world.mirror_free
        world.mirror_free = place
    line.count = 0
    line.ack = 0


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


@compiled
def advance_two(worlds: Records, until: float) -> tuple[int, int, int]:
    """As `advance`, for two stages in a row. A CPU works for one consumer at a time, to the end of what that does.

    Where both have something to do they take turns.

    Returns:
        Why it returns, the site that it is about, and of which stage.
    """
    first, second = worlds[0], worlds[1]
    for site_number in range(first.sites):  # what Python has done may have made room, or work
        _unblock(worlds, site_number, first.now)
        _share(worlds, site_number, first.now)
    while True:
        if first.hungry > 0:
            return ROWS_WANTED, NONE, 0
        stage = 0
        now = _due(first, _winner(first, 1).slot).at
        if _due(second, _winner(second, 1).slot).at < now:
            stage = 1
            now = _due(second, _winner(second, 1).slot).at
        if now >= until:
            first.now = until
            second.now = until
            return REACHED, NONE, 0
        first.now = now
        second.now = now
        world = worlds[stage]
        slot = _winner(world, 1).slot
        if slot >= world.sites:
            _fill(world, slot - world.sites, now)
            continue
        site = _site(world, slot)
        if site.doing == SERVING:
            _finish(world, slot, now)
            site.doing = FREE
            _cpu(first, slot).since = now
            if stage == 0:
                _make(worlds, slot, now)
            if site.quiesced != 0:
                site.quiesced = 0
                return QUIESCED, slot, stage
        elif site.doing == IN_JOB:
            site.busy += now - site.since
            site.doing = FREE
            _cpu(first, slot).since = now
            return JOB_DONE, slot, stage
        elif site.doing == IDLE:
            site.idle += now - site.since
            site.doing = FREE
        _share(worlds, slot, now)


@inlined
def _share(worlds: Records, site_number: int, now: float) -> None:
    """A CPU that has no work is given some, if there is any; who waits for it, or for room, has no event."""
    first, second = worlds[0], worlds[1]
    one, two = _site(first, site_number), _site(second, site_number)
    idle = not (one.doing == SERVING or one.doing == IN_JOB or two.doing == SERVING or two.doing == IN_JOB)
    if idle and (one.doing == FREE or two.doing == FREE):
        _give_work(worlds, site_number, now)
    if (one.doing == FREE or one.doing == BLOCKED) and _due(first, site_number).at < np.inf:
        _schedule(first, site_number, np.inf)
    if two.doing == FREE and _due(second, site_number).at < np.inf:
        _schedule(second, site_number, np.inf)


@inlined
def _give_work(worlds: Records, site_number: int, now: float) -> None:
    """The free consumers of a site look for work in turn, until one has some; it pays what both producers have used."""
    first, second = worlds[0], worlds[1]
    one, two, cpu = _site(first, site_number), _site(second, site_number), _cpu(first, site_number)
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
            _begin(worlds[stage], site_number, now)
            if mine.doing != IDLE:
                cpu.turn = 1 - stage
                if stage == 1 and mine.doing == SERVING:
                    _unblock(worlds, two.producer, now)
                return
            debt = mine.debt
            mine.debt = 0.0
    one.debt = debt


@inlined
def _make(worlds: Records, site_number: int, now: float) -> None:
    """What a consumer of the first stage makes of the tuple that it has processed; it waits if there is no room for it.

    How many tuples and of which groups follows from whose tuple it was, so that any order of processing makes the same.
    """
    first, second = worlds[0], worlds[1]
    site, cpu = _site(first, site_number), _cpu(first, site_number)
    bits = mixed(np.uint64(site.number) * GOLDEN + np.uint64(site.producer) * MIX1 + np.uint64(1))
    whole = math.floor(second.selectivity)
    cpu.left = whole
    if uniform(bits) < second.selectivity - whole:
        cpu.left += 1
    cpu.bits = bits
    cpu.value = site.number
    if first.window > 0:
        cpu.value = _window(first, site.group).sum
    _hand_on(worlds, site_number, now)
    if cpu.left > 0:
        site.doing = BLOCKED
        site.since = now


@inlined
def _hand_on(worlds: Records, site_number: int, now: float) -> None:
    """The second stage's producer takes what the first stage's consumer has made, as far as it has room."""
    first, second = worlds[0], worlds[1]
    site, cpu, producer = _site(first, site_number), _cpu(first, site_number), _producer(second, site_number)
    while cpu.left > 0 and producer.held < second.pool:
        cpu.bits += GOLDEN
        cpu.left -= 1
        producer.generated += 1
        site.debt += second.produce
        _route(second, site_number, _group_of(second, mixed(cpu.bits)), cpu.value, site.stamp, _DRAWN, now)


@inlined
def _unblock(worlds: Records, site_number: int, now: float) -> None:
    """A consumer of the first stage that waits for room may have it now."""
    first = worlds[0]
    site = _site(first, site_number)
    if site.doing == BLOCKED:
        _hand_on(worlds, site_number, now)
        if _cpu(first, site_number).left == 0:
            site.idle += now - site.since
            site.doing = FREE
            _schedule(first, site_number, now)


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
    soonest = np.inf
    if world.standby != 0:
        place = _line(world, site_number).head
        if place != NONE:
            entry = _mirrored(world, place)
            if entry.at <= now:
                _take_up(world, site_number, entry)
                site.mirrored = 1
                site.spilling = 0
                site.doing = SERVING
                _serve(world, site_number, now)
                return
            soonest = entry.at
    first = site_number * world.sites
    producer = site.poll
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
    if world.hold > 0 and _refuses(world, site_number, now):
        site.refused = 1
        _schedule(world, site_number, now)
    elif _partition(world, site.partition).on_disk != 0:
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
def _refuses(world: World, site_number: int, now: float) -> Any:
    """Whether a site sheds the tuple at hand, by the tuple's own random draw; if not, it holds it from now on."""
    site = _site(world, site_number)
    first = site_number * world.hold
    while site.held > 0 and _held(world, first + site.held_first).since + world.held_for <= now:
        site.held -= 1
        site.held_first += 1
        if site.held_first == world.hold:
            site.held_first = 0
    bits = mixed(mixed(world.draws + np.uint64(site.producer)) + np.uint64(site.number) * GOLDEN)
    if uniform(bits) < _part(world, site.held).shed:
        return True
    place = site.held_first + site.held
    if place >= world.hold:
        place -= world.hold
    kept = _held(world, first + place)
    kept.since = now
    kept.partition = site.partition
    site.held += 1
    return False


@inlined
def _expect_take(world: World, site_number: int) -> None:
    """Ask for what a consumer takes next but one, and for what is sent in the place of what it takes next.

    By then many others have taken a tuple, so that this would have to come from memory; which it is, is known now.
    """
    producer = _site(world, site_number).poll
    connection = _connection(world, site_number * world.sites + producer)
    if connection.turn != NONE:
        flow = _flow(world, producer * world.partitions + connection.turn)
        fetch_ahead(world.pooled_at, POOLED, producer * world.places + flow.head)
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
    if world.joins != 0:
        _match(world, site)
        cost += site.matches * world.match
    work = cost + site.debt
    site.debt = 0.0
    _schedule(world, site_number, _done(world, site, now, work))


@inlined
def _finish(world: World, site_number: int, now: float) -> None:
    """The tuple at hand is processed, or written to the spill."""
    site = _site(world, site_number)
    partition = _partition(world, site.partition)
    site.busy += now - site.since
    twin: Any = np.int32(NONE)
    if world.standby != 0:
        if site.mirrored != 0:
            _finish_mirrored(world, site_number, now)
            return
        twin = _pair(world, site.partition).twin
    partition.in_flight -= 1
    if site.refused != 0:
        site.refused = 0
        site.shed += 1
        if world.refusals > 0:
            at = min(int((now - world.watched_from) / world.refusal_s), world.refusals - 1)
            _refusal(world, at).count += 1
        return
    if site.spilling != 0:
        _spill(world, site_number)
        return
    partition.processed += 1
    answer: Any = np.int64(0)
    if world.window > 0:
        answer = _answer(world, site.group, site.number)
        partition.digest = partition.digest * np.int64(6364136223846793005) + answer
    elif world.joins != 0:
        answer = site.matches
        world.answers += site.matches
        world.pairs += site.pairs
        _insert(world, site.number)
    if twin == NONE:
        _commit(world, site_number, site_number, answer, now)
    else:
        _mirror(world, site_number, twin, answer, now)


@inlined
def _finish_mirrored(world: World, site_number: int, now: float) -> None:
    """A twin has processed the tuple at hand, or the owner that was the twin until its pair died."""
    site = _site(world, site_number)
    line = _line(world, site_number)
    place = line.head
    entry = _mirrored(world, place)
    site.mirrored = 0
    line.head = entry.link
    line.count -= 1
    entry.link = world.mirror_free
    world.mirror_free = place
    partition = _partition(world, site.partition)
    promoted = partition.owner == site_number
    if promoted:
        partition.in_flight -= 1
    if world.window > 0:
        answer = _answer(world, site.group if promoted else world.groups + site.group, site.number)
        if answer != entry.answer:
            world.disagreed += 1
    _kept(world, site.producer * world.partitions + site.partition).pending -= 1
    _commit(world, site_number, site_number, entry.answer, now)
    if line.ack > 0:
        line.ack -= 1
        if line.ack == 0:
            site.acks -= 1
            if site.acks == 0:
                site.quiesced = 1


@inlined
def _mirror(world: World, site_number: int, twin: int, answer: int, now: float) -> None:
    """The owner of a partition sends the tuple that it has processed to the twin, at the cost of making one."""
    site = _site(world, site_number)
    place = world.mirror_free
    entry = _mirrored(world, place)
    world.mirror_free = entry.link
    entry.group = site.group
    entry.partition = site.partition
    entry.producer = site.producer
    entry.number = site.number
    entry.answer = answer
    entry.stamp = site.stamp
    entry.cost = site.cost
    entry.taken = site.taken
    entry.at = now + world.latency
    entry.link = NONE
    line = _line(world, twin)
    if line.head == NONE:
        line.head = place
    else:
        _mirrored(world, line.tail).link = place
    line.tail = place
    line.count += 1
    site.debt += world.produce
    world.mirrored += 1
    _kept(world, site.producer * world.partitions + site.partition).pending += 1
    if _site(world, twin).doing == IDLE and entry.at < _due(world, twin).at:
        _schedule(world, twin, entry.at)


@inlined
def _take_up(world: World, site_number: int, entry: Any) -> None:
    """A tuple for a twin is the one at hand."""
    site = _site(world, site_number)
    site.group = entry.group
    site.partition = entry.partition
    site.producer = entry.producer
    site.number = entry.number
    site.stamp = entry.stamp
    site.cost = entry.cost
    site.taken = entry.taken


@inlined
def _commit(world: World, holder: int, site_number: int, answer: int, now: float) -> None:
    """A site answers for the tuple that is at hand at the holder; its producer need keep it no longer."""
    held = _site(world, holder)
    _site(world, site_number).processed += 1
    world.processed += 1
    world.last = now
    _record(world, 0, now - held.taken)
    _record(world, 1, now - held.stamp)
    if world.entries > 0:
        _write_entry(world, holder, site_number, answer, now)
    if world.standby != 0:
        _acknowledge(world, held.producer, held.partition, now)


@inlined
def _acknowledge(world: World, producer_number: int, partition: int, now: float) -> None:
    """A producer forgets the first tuple of a partition that it has kept, and may use its place."""
    producer = _producer(world, producer_number)
    kept = _kept(world, producer_number * world.partitions + partition)
    place = kept.head
    held = _pooled(world, producer_number * world.places + place)
    kept.head = held.link
    held.link = producer.free
    producer.free = place
    if producer.host != NONE:
        _fill(world, producer_number, now)


@inlined
def _keep(world: World, producer_number: int, partition: int, place: int) -> None:
    """A producer keeps a tuple that it has sent, until it is acknowledged."""
    kept = _kept(world, producer_number * world.partitions + partition)
    places = producer_number * world.places
    _pooled(world, places + place).link = NONE
    if kept.head == NONE:
        kept.head = place
    else:
        _pooled(world, places + kept.tail).link = place
    kept.tail = place


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
def _match(world: World, site: Any) -> None:
    """Count what the tuple at hand matches of those that were processed, and add up which these are."""
    first = world.joined_first
    row = _joined(world, site.number - first)
    site.matches = 0
    site.pairs = np.uint64(0)
    if row.list == NONE:
        return
    earliest, latest = row.time - world.apart, row.time + world.apart
    at = _newest(world, row.list ^ 1).at
    while at >= first:
        other = _joined(world, at - first)
        if other.time < earliest:
            return
        if other.time <= latest:
            older, newer = np.uint64(min(at, site.number)), np.uint64(max(at, site.number))
            site.matches += 1
            site.pairs += mixed(mixed(older * GOLDEN + np.uint64(1)) + newer)
        at = other.link


@inlined
def _insert(world: World, number: int) -> None:
    """A processed row stands among those of its group and side by its rank, which is seldom not the newest."""
    first = world.joined_first
    row = _joined(world, number - first)
    if row.list == NONE:
        return
    newest = _newest(world, row.list)
    at = newest.at
    newer: Any = np.int64(NONE)
    while at > number:
        newer = at
        at = _joined(world, at - first).link
    row.link = at
    if newer == NONE:
        newest.at = number
    else:
        _joined(world, newer - first).link = number


@inlined
def _write_entry(world: World, holder: int, site_number: int, answer: int, now: float) -> None:
    if world.journalled < world.entries:
        site = _site(world, holder)
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
    """Count a latency."""
    sums = _latency(world, kind)
    sums.count += 1
    sums.sum += latency
    sums.max = max(sums.max, latency)
    _bin(world, kind * BINS + bin_of(latency)).count += 1


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
    while producer.held < world.pool and producer.free != NONE:
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
        _site(world, producer.host).debt += world.produce
        _route(world, producer_number, group, number, stamp, cost, now)
    if not world.drawn:
        _schedule(world, slot, np.inf)
    elif world.pool > 1:
        _expect_draw(world, producer_number)


@inlined
def _expect_draw(world: World, producer_number: int) -> None:
    """Ask for the flow of the tuple that a producer draws next."""
    bits = mixed(_producer(world, producer_number).random + GOLDEN)
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
    producer.random += GOLDEN
    return mixed(producer.random)


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
        if world.standby == 0:
            return
    producer = _producer(world, producer_number)
    place = producer.free
    held = _pooled(world, producer_number * world.places + place)
    producer.free = held.link
    if free:
        _write(held, group, number, stamp, cost)
        _keep(world, producer_number, partition_number, place)
        return
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
        _pooled(world, producer_number * world.places + flow.tail).link = place
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
    held = _pooled(world, producer_number * world.places + place)
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
    held = _pooled(world, producer_number * world.places + place)
    flow.head = held.link
    _send(world, producer_number, site, _group(world, held.group).partition, place, now)


@inlined
def _send(world: World, producer_number: int, site: int, partition: int, place: int, now: float) -> None:
    """The tuple at a place of the pool goes, and its place is free."""
    producer = _producer(world, producer_number)
    held = _pooled(world, producer_number * world.places + place)
    sent = _place(world, producer_number, site, partition, now)
    _write(sent, held.group, held.number, held.stamp, held.cost)
    producer.held -= 1
    if world.standby != 0:
        _keep(world, producer_number, partition, place)
    else:
        held.link = producer.free
        producer.free = place


@inlined
def _drain(world: World, producer: int, site: int, now: float) -> None:
    """Send what waits for a connection as long as it has room."""
    connection = _connection(world, site * world.sites + producer)
    while connection.turn != NONE and connection.count < world.credits:
        _forward(world, producer, site, now)


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
def _cpu(world: World, number: int) -> Any:
    """The CPU of a site that works for two stages."""
    return record_at(world.cpu_at, CPU, number)


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
def _joined(world: World, number: int) -> Any:
    """A row that is to be joined, by its rank from the first that is kept."""
    return record_at(world.joined_at, JOINED, number)


@inlined
def _newest(world: World, number: int) -> Any:
    """The newest row of number 2 * group + side that was processed."""
    return record_at(world.newest_at, NEWEST, number)


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
def _pair(world: World, number: int) -> Any:
    """The pair that a partition is one of."""
    return record_at(world.pair_at, PAIR, number)


@inlined
def _kept(world: World, number: int) -> Any:
    """What is kept of the flow of number producer * partitions + partition."""
    return record_at(world.kept_at, KEPT, number)


@inlined
def _line(world: World, number: int) -> Any:
    """What waits for the twins at a site."""
    return record_at(world.line_at, LINE, number)


@inlined
def _mirrored(world: World, number: int) -> Any:
    """A place for a tuple in line."""
    return record_at(world.mirror_at, MIRRORED, number)


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
def _held(world: World, number: int) -> Any:
    return record_at(world.held_at, HELD, number)


@inlined
def _refusal(world: World, number: int) -> Any:
    """A stretch of time in which it is counted what is shed."""
    return record_at(world.refusal_at, REFUSAL, number)


@inlined
def _part(world: World, number: int) -> Any:
    return record_at(world.part_at, PART, number)


@inlined
def _due(world: World, number: int) -> Any:
    """The next event of a slot."""
    return record_at(world.due_at, DUE, number)


@inlined
def _winner(world: World, number: int) -> Any:
    """A match of the tournament."""
    return record_at(world.winner_at, WINNER, number)
