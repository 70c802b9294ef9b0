"""Sending in the model, by flag or by lock."""

from adapt.core.atomics import load, release
from adapt.core.compiled import inlined, record_after
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, slot_at
from adapt.core.ordered.engine.kernel.reorder_buffer import send_down
from adapt.core.ordered.engine.kernel.tuples import outputs_at
from adapt.core.ordered.engine.kernel.work_queue import room_in
from adapt.core.ordered.model.events import DRAINED, LOCKED, ModelWorker, model_worker_at, schedule, wake_idle


@inlined
def _ready(operator: Operator) -> bool:
    """Whether the next batch is in the ring buffer."""
    serial = operator.next
    return slot_at(operator, serial).ticket == serial + 1


@inlined
def begin_send(header: Header, me: ModelWorker, operator: Operator, state: int) -> bool:
    """Begin to send the next batch if possible.

    Only with the flag `sending`, if the batch is there and has room.
    """
    if not _ready(operator):
        return False
    if operator.number < header.operators - 1 and room_in(record_after(operator, 1), 1) <= 0:
        return False
    held = slot_at(operator, operator.next).outputs - operator.sent
    schedule(me, state, header.now_ns + header.send_ns + held * header.output_ns)
    return True


@inlined
def release_sending(header: Header, operator: Operator) -> None:
    """Clear the flag, or hand the lock to the next waiting worker."""
    head = operator.lock_head
    if head == operator.lock_tail:
        operator.sending = 0
        return
    operator.lock_head = head + 1
    next_one = model_worker_at(header, load(operator.lock_queue_at, head % header.workers))
    schedule(next_one, LOCKED, header.now_ns + header.lock_handover_ns)


@inlined
def send_batch(header: Header, tally: Tally, operator: Operator) -> bool:
    """Send as much of the next batch as has room.

    Returns whether all of it was sent.
    """
    serial = operator.next
    slot = slot_at(operator, serial)
    held, sent = slot.outputs, operator.sent
    block = slot.block
    outputs = (block if block else outputs_at(operator, serial)) + 8 * sent * operator.out_words
    sent += send_down(header, operator, outputs, held - sent)
    wake_idle(header)
    if sent < held:
        operator.sent = sent
        tally.blocked += 1
        return False
    operator.sent = 0
    slot.block = 0
    release(block)
    slot.ticket = 0
    operator.next = serial + slot.tuples
    return True


@inlined
def drain_before(header: Header, me: ModelWorker, operator: Operator) -> bool:
    """Resume sending after a full work queue, unless another worker sends."""
    if operator.sending or not begin_send(header, me, operator, DRAINED):
        return False
    operator.sending = 1
    me.operator = operator.number
    return True
