"""Sending in the model, by flag or by lock."""

from adapt.core.atomics import load
from adapt.core.compiled import inlined, record_after
from adapt.core.ordered.engine.kernel.codes import MOST_CHUNK, RETRY
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, tally_at
from adapt.core.ordered.engine.kernel.reorder_buffer import send_next
from adapt.core.ordered.engine.kernel.tuples import HELD, is_ready
from adapt.core.ordered.engine.kernel.work_queue import room_in
from adapt.core.ordered.model.events import (
    BLOCKED,
    DRAINED,
    LOCKED,
    SERVED,
    ModelWorker,
    model_worker_at,
    schedule,
    wake_idle,
    whole_ns,
)


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
