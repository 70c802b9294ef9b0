"""Time slices of the model, and chunks.

As on threads, a worker claims a chunk of what has arrived, splits it by lane where the operator has lanes, and sends at
its end, or before a further round in a lane that others delegated tuples to. Until then its outputs are in the ring
buffer, where another worker that sends takes them along. With `retry` it sends after each batch, so that its own
outputs never wait for room that they take up. A batch is what gets its ticket at once: consecutive tuples without
marks, or a marked one.

Events of the model: when workers act next, and how.

Random service times and outputs, by serial number, independent of the schedule.

Batches of the model: tuples that a worker processes at once.
"""

import numpy as np

from adapt.core.atomics import load, store
from adapt.core.compiled import Record, flattened, inlined, record_after, record_at
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.chain.names import MOST_CHUNK
from adapt.core.ordered.engine.kernel.claiming import chunk_of, claimable_before, count_lanes
from adapt.core.ordered.engine.kernel.layout import (
    HYBRID,
    PARTITIONED,
    RETRY,
    TIMED,
    Header,
    Operator,
    Tally,
    of_words,
    operator_at,
    partition_at,
    tally_at,
)
from adapt.core.ordered.engine.kernel.reorder_buffer import send_next
from adapt.core.ordered.engine.kernel.running import fail, run_one
from adapt.core.ordered.engine.kernel.schedule import outputs_made, tuples_done
from adapt.core.ordered.engine.kernel.work_queue import (
    BARE,
    COPY,
    HELD,
    MARK,
    MARKED,
    PUNCTUATION,
    copy_of,
    copy_words,
    count_bare,
    feed_rows,
    hand_on,
    is_ready,
    most_fed,
    note_arrivals,
    only_passes,
    outputs_at,
    partition_queue_at,
    room_in,
    ticket_of,
    tuple_at,
)
from adapt.core.ordered.functions.routed import cost_place, edge_of
from adapt.core.random_bits import mixed

NEVER = 1 << 62

ASKS, WAITS, SERVED, SENT_ON, DRAINED, LOCKED, BLOCKED = range(7)
"""States of a worker: asks for work; waits for work; has processed its batch; has sent a batch, of its own operator or
before it asks for work; got the lock; waits for the lock or, with `RETRY`, for room in the ring buffer."""


MODEL_WORKER = of_words(
    "due_at",  # address of the time of its next event
    "state",
    "operator",
    "partition",
    "serial",
    "tuples",
    "sends",  # tuples that it is sending
    "quota",  # tuples of the slice
    "left",  # of the quota
    "round",  # those left of the chunk, or of the lane that it is in
    "lanes",  # of the chunk, and the next one of them
    "lane",
    "start_ns",  # of the slice
    "done_before",  # what it had done of the operator before the slice
    "made_before",
    "inside",  # whether it is inside a partition
    "blocked_ns",  # since when it is blocked
    "rest_ps",  # time that its last event did not last, since events last whole nanoseconds
)


class ModelWorker(Record):
    """A record of the kind `MODEL_WORKER`."""


@inlined
def model_worker_at(header: Header, worker: int) -> ModelWorker:
    """A worker by its number."""
    found: ModelWorker = record_at(header.model_workers_at, MODEL_WORKER, worker)
    return found


@inlined
def whole_ns(me: ModelWorker, time_ps: int) -> int:
    """Nanoseconds of an event; the rest is added to the next."""
    time_ps += me.rest_ps
    me.rest_ps = time_ps % 1000
    return time_ps // 1000


@inlined
def schedule(me: ModelWorker, state: int, when: int) -> None:
    """Schedule an event of a worker."""
    me.state = state
    store(me.due_at, 0, when)


@inlined
def ask(header: Header, me: ModelWorker) -> None:
    """Let a worker ask the scheduler, which takes some time."""
    others = header.workers - 1 - header.idlers
    took_ns = whole_ns(me, header.query_ps + others * header.contended_query_ps)
    schedule(me, ASKS, header.now_ns + took_ns)


@inlined
def wake_idle(header: Header) -> None:
    """Wake all workers that wait for work."""
    if not header.idlers:
        return
    header.idlers = 0
    for worker in range(header.workers):
        me = model_worker_at(header, worker)
        if me.state == WAITS:
            ask(header, me)


@inlined
def rows_arrived(header: Header) -> int:
    """Rows that have arrived by now."""
    if not header.arrivals_at:
        return header.rows
    note_arrivals(header, header.now_ns, False)
    return header.arrived


@inlined
def feed_arrived(header: Header) -> None:
    """Enqueue the rows that have arrived, as far as there is room."""
    first = operator_at(header, 0)
    rows, most = rows_arrived(header) - header.fed, most_fed(header)
    room = min(room_in(first, most), most)
    if rows > 0 and room > 0:
        feed_rows(header, first, min(rows, most), room)


@inlined
def has_room(me: ModelWorker, operator: Operator) -> bool:
    """Whether a worker's batch has room in the ring buffer."""
    return me.serial + me.tuples - 1 <= operator.next + operator.ring_mask


@inlined
def _unblock(header: Header, me: ModelWorker, worker: int, state: int, when: int) -> None:
    """End a worker's wait, and count it."""
    tally_at(header, worker, me.operator).waited_ns += when - me.blocked_ns
    schedule(me, state, when)


@inlined
def _unblock_with_room(header: Header, operator: Operator) -> None:
    """Let all workers whose batches now have room put them into the ring buffer."""
    for worker in range(header.workers):
        me = model_worker_at(header, worker)
        if me.state == BLOCKED and me.operator == operator.number and has_room(me, operator):
            _unblock(header, me, worker, SERVED, header.now_ns)


@inlined
def begin_send(header: Header, me: ModelWorker, operator: Operator, state: int) -> bool:
    """Begin to send the next tuples, at most a batch, if possible.

    Only with the flag `sending`, if the first is ready and has room.
    """
    first = operator.next
    if not is_ready(operator, first):
        return False
    if operator.number < header.operators - 1 and room_in(record_after(operator, 1), 1) <= 0:
        return False
    held, end = -operator.sent, first
    while end < first + (header.chunk or MOST_CHUNK) and is_ready(operator, end):
        held += load(operator.slots_at, end & operator.ring_mask) & HELD
        end += 1
    me.sends = end - first
    took_ps = held * operator.output_ps
    schedule(me, state, header.now_ns + header.send_ns + whole_ns(me, took_ps))
    return True


@inlined
def release_sending(header: Header, operator: Operator) -> None:
    """Clear the flag, or hand the lock to the next waiting worker."""
    head = operator.lock_head
    if head == operator.lock_tail:
        operator.sending = 0
        return
    operator.lock_head = head + 1
    worker = load(operator.lock_queue_at, head % header.workers)
    _unblock(header, model_worker_at(header, worker), worker, LOCKED, header.now_ns + header.lock_handover_ns)


@inlined
def send_batch(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Send as much as has room; returns whether it was all."""
    sent = 0
    while sent < me.sends and send_next(header, operator):
        sent += 1
    tally.blocked += sent < me.sends
    wake_idle(header)
    if header.reorder == RETRY:
        _unblock_with_room(header, operator)
    return sent == me.sends


@inlined
def drain_before(header: Header, me: ModelWorker, operator: Operator) -> bool:
    """Resume sending after a full work queue, unless another worker sends."""
    if operator.sending or not begin_send(header, me, operator, DRAINED):
        return False
    operator.sending = 1
    me.operator = operator.number
    return True


@inlined
def _drawn(header: Header, operator: Operator, what: int, serial: int) -> np.uint64:
    """Random bits of a tuple, for its cost (0) or its outputs (1), from SplitMix64."""
    return mixed(np.uint64(header.seed + 2 * operator.number + what) + np.uint64(serial + 1) * np.uint64(FOLD))


@inlined
def service_ps(header: Header, operator: Operator, serial: int, tuples: int) -> int:
    """Service time of a batch in picoseconds, with what other workers add."""
    at, share = operator.cost_at, header.jitter / 1048576.0
    crowd_ps, total, added = operator.crowd_ps * (operator.working - 1), 0.0, 0
    for number in range(serial, serial + tuples):
        given = tuple_at(operator, number)
        if load(given, MARK) >= PUNCTUATION:
            continue
        cost = 0.0
        if not only_passes(operator, given + 8):
            place = at
            if at >= 0 and operator.routes_at:
                place = cost_place(edge_of(operator.routes_at, given + 8))
            cost = float(operator.cost_ns if place < 0 else load(given, 1 + place))
        if share > 0:
            even = (float(_drawn(header, operator, 0, number) >> np.uint64(11)) + 0.5) / 9007199254740992.0
            cost *= 1.0 - share - share * np.log(even)
        total += cost
        added += crowd_ps
    return 1000 * int(total + 0.5) + added


@inlined
def _put(operator: Operator, serial: int, ticket: int) -> None:
    """Put a tuple's outputs into the ring buffer."""
    store(operator.slots_at, serial & operator.ring_mask, ticket)


@inlined
def _run_function(header: Header, tally: Tally, operator: Operator, partition: int, serial: int, tuples: int) -> None:
    """Run the operator's function on a batch."""
    for number in range(serial, serial + tuples):
        if operator.master_at:  # a replica has several partitions
            partition = load(operator.master_at, number & operator.queue_mask)
        ticket = run_one(header, tally, operator, partition, number, outputs_at(operator, number))
        if ticket < 0:
            fail(header, operator, ticket)
            return
        _put(operator, number, ticket)


@inlined
def _copied(header: Header, tally: Tally, operator: Operator, serial: int) -> int:
    """Write a tuple's outputs as copies, as many as are drawn; returns their number."""
    size, outputs = operator.out_words, outputs_at(operator, serial)
    given, share, count = tuple_at(operator, serial), np.uint64(operator.share), 0
    mark = load(given, MARK)
    if PUNCTUATION <= mark < BARE:
        count_bare(tally)
        if copy_of(mark) == operator.partitions - 1:
            tally.bare_made += 1
            hand_on(given, outputs, mark, size)
            count = 1
        return count
    if mark < BARE:
        count = operator.whole
        if share and _drawn(header, operator, 1, serial) < share:
            count += 1
    else:
        count_bare(tally)
    for output in range(count):
        store(outputs, output * size, 0)
        copy_words(given + 8, outputs + 8 * (output * size + 1), size - 1)
    if mark and count:
        store(outputs, (count - 1) * size, mark)
    elif mark:
        tally.bare_made += 1
        store(outputs, 0, mark | BARE)
        count = 1
    return count


@inlined
def put_outputs(header: Header, tally: Tally, operator: Operator, partition: int, serial: int, tuples: int) -> None:
    """Put a batch's outputs into the ring buffer.

    Those of its function, or copies by drawn selectivity.
    """
    if operator.function:
        _run_function(header, tally, operator, partition, serial, tuples)
        return
    for number in range(serial, serial + tuples):
        held = _copied(header, tally, operator, number)
        tally.made += held
        _put(operator, number, ticket_of(number) | MARKED | held)
    tally.done += tuples


@inlined
def begin_batch(header: Header, me: ModelWorker, operator: Operator, partition: int, serial: int, tuples: int) -> None:
    """Start a batch, which ends after its service time."""
    now = header.now_ns
    served = now + whole_ns(me, service_ps(header, operator, serial, tuples))
    me.partition = partition
    me.serial = serial
    me.tuples = tuples
    if operator.number == 0 and header.mark_every:
        for number in range(serial, serial + tuples):
            mark = load(tuple_at(operator, number), MARK) & (COPY - 1)
            if mark:
                timed = record_at(header.marks_at, TIMED, mark - 1)
                timed.entered = now
                timed.served = served
                timed.worker = (me.due_at - header.dues_at) // 8
    schedule(me, SERVED, served)


@flattened
def _run_length(operator: Operator, queue: int, head: int, most: int, is_plain: bool) -> int:
    """Consecutive tuples of a lane's queue, or of the operator's with an address of 0.

    With `is_plain` up to a marked one, which is alone.
    """
    mask = operator.queue_mask
    first, tuples = load(queue, head & mask) if queue else head, 1
    if is_plain and load(tuple_at(operator, first), MARK):
        return 1
    while tuples < most:
        serial = load(queue, (head + tuples) & mask) if queue else head + tuples
        if serial != first + tuples or (is_plain and load(tuple_at(operator, serial), MARK)):
            break
        tuples += 1
    return tuples


@inlined
def begin_in_lane(header: Header, me: ModelWorker, operator: Operator, lane: int, most: int) -> None:
    """Start the batch at the head of a lane's queue."""
    part, queue = partition_at(operator, lane), partition_queue_at(operator, lane)
    head = part.head
    tuples = _run_length(operator, queue, head, most, not header.chunk)
    part.head = head + tuples
    begin_batch(header, me, operator, lane, load(queue, head & operator.queue_mask), tuples)


@inlined
def begin_in_queue(header: Header, me: ModelWorker, operator: Operator, serial: int, most: int) -> None:
    """Start the batch of an operator without lanes."""
    tuples = most if header.chunk else _run_length(operator, 0, serial, most, True)
    begin_batch(header, me, operator, 0, serial, tuples)


@inlined
def _found_at(header: Header, me: ModelWorker) -> int:
    """The address of the lanes of a worker's chunk; the counts of tuples by lane are behind them."""
    worker = (me.due_at - header.dues_at) // 8
    return header.scratch_at + 8 * (header.scratch_words * worker + header.room_words)


@inlined
def _most(me: ModelWorker, operator: Operator) -> int:
    """Tuples of the next batch of a round, which have room in the ring buffer."""
    return min(me.round, operator.ring_mask + 1)


@flattened
def _begin_lane(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Start on the next lane of the chunk that is idle; delegate the tuples of busy ones."""
    found = _found_at(header, me)
    while me.lane < me.lanes:
        lane = load(found, me.lane)
        count = load(found + 8 * MOST_CHUNK, lane)
        store(found + 8 * MOST_CHUNK, lane, 0)
        me.lane += 1
        part = partition_at(operator, lane)
        part.waiting += count
        if part.waiting > count:
            tally.delegated += count
            continue
        me.inside = 1
        me.round = count
        begin_in_lane(header, me, operator, lane, _most(me, operator))
        return True
    return False


@inlined
def _owned_chunk(header: Header, me: ModelWorker, operator: Operator, partition: int) -> int:
    """Tuples of the next chunk of an owned partition."""
    part, queue, mask = partition_at(operator, partition), partition_queue_at(operator, partition), operator.queue_mask
    head, end = part.head, claimable_before(header, operator)
    most, tuples = chunk_of(header, part.tail - head, me.quota), 0
    while tuples < most and load(queue, (head + tuples) & mask) < end:
        tuples += 1
    return tuples


@inlined
def _partition_run(operator: Operator, head: int, most: int) -> int:
    """Consecutive tuples of one partition at the head of the master queue."""
    master, mask, tuples = operator.master_at, operator.queue_mask, 1
    while tuples < most and load(master, (head + tuples) & mask) == load(master, head & mask):
        tuples += 1
    return tuples


@flattened
def _begin_chunk(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Claim a chunk, or go on in a lane with delegated tuples.

    Of an operator without owned partitions. A chunk of a given size has tuples of one partition.
    """
    is_split = operator.work_queue == HYBRID
    if is_split and me.inside:
        me.round = min(partition_at(operator, me.partition).waiting, header.chunk or MOST_CHUNK)
        begin_in_lane(header, me, operator, me.partition, _most(me, operator))
        return True
    while me.left > 0:
        head = operator.head
        tuples = chunk_of(header, claimable_before(header, operator) - head, me.quota)
        if tuples <= 0:
            return False
        if is_split and (header.chunk or header.reorder == RETRY):
            tuples = _partition_run(operator, head, tuples if header.chunk else 1)
        operator.head = head + tuples
        if not is_split:
            me.round = tuples
            begin_in_queue(header, me, operator, head, _most(me, operator))
            return True
        found = _found_at(header, me)
        me.lane = 0
        me.lanes = count_lanes(operator, found, found + 8 * MOST_CHUNK, head, tuples)
        if _begin_lane(header, tally, me, operator):
            return True
    return False


@flattened
def goes_on(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Go on in the chunk after a batch; whether anything is left.

    Nothing is sent before, unless chunks have a given size: those are one batch.
    """
    me.left -= me.tuples
    me.round = 0 if header.chunk else me.round - me.tuples
    work_queue = operator.work_queue
    if work_queue == HYBRID:
        part = partition_at(operator, me.partition)
        part.waiting -= me.tuples
        if me.round:
            begin_in_lane(header, me, operator, me.partition, _most(me, operator))
            return True
        if part.waiting:
            return False
        me.inside = 0
        return _begin_lane(header, tally, me, operator)
    if not me.round:
        return False
    if work_queue == PARTITIONED:
        begin_in_lane(header, me, operator, me.partition, _most(me, operator))
    else:
        begin_in_queue(header, me, operator, me.serial + me.tuples, _most(me, operator))
    return True


@inlined
def _begin_owned(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Go on in the owned partition or replica, or take over the next partition with tuples."""
    replicas = operator.replicas
    cursor, lanes = tally.cursor, replicas or operator.partitions
    for step in range(1 if replicas else lanes):
        partition = (cursor + step) % lanes
        part = partition_at(operator, partition)
        mine = step == 0 and me.inside == 1
        if part.head >= part.tail or (part.owned and not mine):
            continue
        tuples = _owned_chunk(header, me, operator, partition)
        if not tuples:
            continue
        me.round = tuples
        if not mine:
            if me.inside:
                partition_at(operator, cursor).owned = 0
            part.owned = 1
            me.inside = 1
            tally.cursor = partition
        before = part.head
        begin_in_lane(header, me, operator, partition, _most(me, operator))
        operator.head += part.head - before if header.chunk else tuples
        return True
    return False


@inlined
def begin_next(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> bool:
    """Start the next batch of the slice; whether there is one."""
    if operator.work_queue != PARTITIONED:
        return _begin_chunk(header, tally, me, operator)
    return me.left > 0 and _begin_owned(header, tally, me, operator)


@inlined
def leave_operator(header: Header, tally: Tally, me: ModelWorker, operator: Operator) -> None:
    """End the slice: update the estimates and leave the partition."""
    took = header.now_ns - me.start_ns
    tally.busy_ns += took
    worked = tuples_done(tally) - me.done_before
    if worked:
        operator.time_ns += took
        operator.window_time_ns += took
        operator.outputs += outputs_made(tally) - me.made_before
        operator.inputs += worked
    if me.inside and operator.work_queue == PARTITIONED:
        partition_at(operator, tally.cursor).owned = 0
    me.inside = 0
    operator.working -= 1
