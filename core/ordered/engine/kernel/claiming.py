"""Claims of tuples from a work queue by compare-and-swap.

Partitioned operators: the hybrid and the partitioned work queue.

Source: ordered streams, section 4 (Figure 7).
"""

from adapt.core.atomics import (
    exchange,
    fetch_add,
    fixed,
    load,
    load_atomic,
    publish,
    replace,
    short_loops,
    store,
)
from adapt.core.compiled import flattened, inlined, record_after
from adapt.core.ordered.chain.names import MOST_CHUNK
from adapt.core.ordered.engine.kernel.layout import RETRY, Header, Operator, Tally, partition_at
from adapt.core.ordered.engine.kernel.running import count_ahead, run_claimed, send
from adapt.core.ordered.engine.kernel.work_queue import partition_queue_at

SHARED_SLICE = 64
"""Part of a slice from which on a chunk is shared: to share less costs more than it saves."""


@flattened
def claimable_before(header: Header, operator: Operator) -> int:
    """The first serial number that may not be claimed yet.

    Later tuples have not arrived or have no room in the ring buffer.

    With `RETRY` those of a work queue may be, whatever the ring buffer, but none while the next operator has enough.
    """
    end = load_atomic(operator, "tail")
    if fixed(header, "reorder") != RETRY:
        return min(end, load_atomic(operator, "next") + fixed(operator, "ring_mask") + 1)
    if fixed(operator, "number") < fixed(header, "operators") - 1:
        down = record_after(operator, 1)
        if load_atomic(down, "tail") - load_atomic(down, "next") >= fixed(header, "queue"):
            return 0
    return min(end, load_atomic(operator, "next") + fixed(header, "queue"))


@flattened
def chunk_of(header: Header, claimable: int, quota: int) -> int:
    """Tuples to claim at once; below 1 if none can be.

    A worker never waits for a chunk to fill: it claims what has arrived. A chunk that adapts to cost takes no longer
    than a slice, and leaves the other workers their share of what takes longer than a small part of one.
    """
    chunk = fixed(header, "chunk")
    if not chunk:
        share = max(claimable // fixed(header, "workers") + 1, quota // SHARED_SLICE)
        chunk = min(quota, MOST_CHUNK, share)
    return min(claimable, chunk)


@inlined
def take_shared(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Process tuples of an operator without partitions; returns their number."""
    done = 0
    while done < quota and not load_atomic(header, "stop"):
        head = load_atomic(operator, "head")
        tuples = chunk_of(header, claimable_before(header, operator) - head, quota)
        if tuples <= 0:
            break
        if not replace(operator, "head", head, head + tuples):
            continue
        count_ahead(tally, operator, head + tuples)
        run_claimed(header, tally, scratch, operator, 0, 0, head, tuples)
        send(header, tally, operator)
        done += tuples
    return done


@inlined
def _work_off(header: Header, tally: Tally, scratch: int, operator: Operator, lane: int, waiting: int) -> int:
    """Process the claimed tuples of a lane, and those that others delegate meanwhile.

    This ends after at most one ring buffer of tuples, since claims need room in it.
    """
    part = partition_at(operator, lane)
    queue, done = partition_queue_at(operator, lane), 0
    while waiting > 0 and not load_atomic(header, "stop"):
        if done:
            send(header, tally, operator)
        head, tuples = part.head, min(waiting, MOST_CHUNK)
        part.head = head + tuples
        run_claimed(header, tally, scratch, operator, lane, queue, head, tuples)
        done += tuples
        waiting = fetch_add(part, "waiting", -tuples) - tuples
    return done


@inlined
def count_lanes(operator: Operator, found: int, counts: int, head: int, tuples: int) -> int:
    """Count tuples by lane, and list the lanes.

    In the order of their first tuples. Returns how many there are.
    """
    short_loops()
    master, mask, lanes = fixed(operator, "master_at"), fixed(operator, "queue_mask"), fixed(operator, "lanes")
    number = 0
    for at in range(head, head + tuples):
        lane = load(master, at & mask) & lanes
        count = load(counts, lane)
        if not count:
            store(found, number, lane)
            number += 1
        store(counts, lane, count + 1)
    return number


@inlined
def take_delegating(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Claim chunks from the master queue, and split them by lane.

    The tuples of a busy lane are delegated to the worker inside it.
    """
    found, done = scratch + 8 * fixed(header, "room_words"), 0
    counts = found + 8 * MOST_CHUNK
    # A worker that waits for room must not hold the tuples that would make room: those of other lanes.
    most = 1 if fixed(header, "reorder") == RETRY else MOST_CHUNK
    while done < quota and not load_atomic(header, "stop"):
        head = load_atomic(operator, "head")
        tuples = min(chunk_of(header, claimable_before(header, operator) - head, quota), most)
        if tuples <= 0:
            break
        # Read before the claim: after it the places may be reused.
        lanes = count_lanes(operator, found, counts, head, tuples)
        claimed = replace(operator, "head", head, head + tuples)
        if claimed:
            count_ahead(tally, operator, head + tuples)
        for number in range(lanes):
            lane = load(found, number)
            waiting = load(counts, lane)
            store(counts, lane, 0)
            if not claimed:
                continue
            if fetch_add(partition_at(operator, lane), "waiting", waiting):
                tally.delegated += waiting
            else:
                done += _work_off(header, tally, scratch, operator, lane, waiting)
        if claimed:
            send(header, tally, operator)
    return done


@inlined
def _work_in(header: Header, tally: Tally, scratch: int, operator: Operator, partition: int, quota: int) -> int:
    """Process an owned partition until its queue is empty, the quota is used, or the ring buffer is full."""
    part = partition_at(operator, partition)
    queue, mask = partition_queue_at(operator, partition), operator.queue_mask
    done = 0
    while done < quota and not load_atomic(header, "stop"):
        head = part.head
        most = load_atomic(part, "tail") - head
        if most <= 0:
            break
        end, tuples = claimable_before(header, operator), 0
        most = chunk_of(header, most, quota)
        while tuples < most and load(queue, (head + tuples) & mask) < end:
            tuples += 1
        if not tuples:
            break
        count_ahead(tally, operator, load(queue, (head + tuples - 1) & mask) + 1)
        publish(part, "head", head + tuples)
        fetch_add(operator, "head", tuples)
        run_claimed(header, tally, scratch, operator, partition, queue, head, tuples)
        send(header, tally, operator)
        done += tuples
    return done


@inlined
def take_partitions(header: Header, tally: Tally, scratch: int, operator: Operator, quota: int) -> int:
    """Own and process partitions in turn, or the tuples of a replica.

    From where this worker was last.
    """
    replicas = operator.replicas
    cursor, done, lanes = tally.cursor, 0, replicas or operator.partitions
    for step in range(1 if replicas else lanes):
        partition = (cursor + step) % lanes
        part = partition_at(operator, partition)
        if load_atomic(part, "head") >= load_atomic(part, "tail"):
            continue
        if exchange(part, "owned", 1):
            continue
        done += _work_in(header, tally, scratch, operator, partition, quota - done)
        exchange(part, "owned", 0)
        if done >= quota or load_atomic(header, "stop"):
            tally.cursor = partition
            break
    return done
