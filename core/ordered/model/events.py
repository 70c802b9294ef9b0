"""Events of the model: when workers act next, and how."""

from adapt.core.atomics import load, store
from adapt.core.compiled import Record, inlined, record_after, record_at
from adapt.core.ordered.engine.kernel.codes import MOST_CHUNK, RETRY
from adapt.core.ordered.engine.kernel.feeding import feed_rows, most_fed, note_arrivals
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, of_words, operator_at, tally_at
from adapt.core.ordered.engine.kernel.reorder_buffer import send_next
from adapt.core.ordered.engine.kernel.work_queue import HELD, is_ready, room_in

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
