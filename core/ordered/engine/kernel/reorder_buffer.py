"""Reorder buffer: a ring buffer of batches, sent on in serial order.

One worker at a time sends. A batch has the serial number of its first tuple, and `next` advances by the number of its
tuples. Their places in the work queue and in the ring buffer are reused only after their outputs were sent. Outputs
without room in the ring buffer wait in a memory block of their own.

Source: ordered streams, section 3 (Figure 4).
"""

from adapt.core.atomics import apart, exchange, fixed, load, load_atomic, publish, release, short_loops
from adapt.core.compiled import flattened, inlined, record_after
from adapt.core.ordered.engine.kernel.egress import leave
from adapt.core.ordered.engine.kernel.layout import Header, Operator, Tally, slot_at
from adapt.core.ordered.engine.kernel.punctuation import enqueue_copies
from adapt.core.ordered.engine.kernel.tuples import BARE, MARK, PUNCTUATION, outputs_at
from adapt.core.ordered.engine.kernel.work_queue import enqueue, room_in


@inlined
def _pass_on(operator: Operator, outputs: int, count: int) -> int:
    """Enqueue outputs at the next operator as far as there is room; returns their number."""
    apart()
    short_loops()
    down = record_after(operator, 1)
    size = 8 * fixed(operator, "out_words")
    room = room_in(down, count)
    sent, tail = 0, down.tail
    serial, end = tail, tail + room
    while sent < count and serial < end:
        output = outputs + sent * size
        mark = load(output, MARK)
        if mark < PUNCTUATION or mark >= BARE:
            enqueue(down, serial, mark, output + 8)
            serial += 1
        else:
            serial += enqueue_copies(down, serial, mark, output + 8)
            if down.copied:
                break
        sent += 1
    if serial > tail:
        publish(down, "tail", serial)
    return sent


@flattened
def send_down(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """Send outputs downstream; returns how many had room."""
    number = fixed(operator, "number")
    if number == fixed(header, "operators") - 1:
        return leave(header, operator, outputs, count)
    return _pass_on(operator, outputs, count)


@flattened
def send_ready(header: Header, tally: Tally, operator: Operator) -> bool:
    """Send ready batches; returns whether there is no room for more.

    In the next work queue, or for kept tuples.

    Needs the flag `sending`.
    """
    while True:
        serial = operator.next
        slot = slot_at(operator, serial)
        if load_atomic(slot, "ticket") != serial + 1:
            return False
        held, sent, block = slot.outputs, operator.sent, slot.block
        outputs = (block if block else outputs_at(operator, serial)) + 8 * sent * fixed(operator, "out_words")
        sent += send_down(header, operator, outputs, held - sent)
        if sent < held:
            operator.sent = sent
            tally.blocked += 1
            return True
        if operator.sent:
            operator.sent = 0
        if block:
            slot.block = 0
            release(block)
        covered = slot.tuples
        slot.ticket = 0
        publish(operator, "next", serial + covered)


@flattened
def drain(header: Header, tally: Tally, operator: Operator) -> None:
    """Send what is ready, unless another worker is sending."""
    while not exchange(operator, "sending", 1):
        full = send_ready(header, tally, operator)
        # An exchange, to be ordered with that of a worker that added a batch and found the flag set.
        exchange(operator, "sending", 0)
        serial = load_atomic(operator, "next")
        if full or load_atomic(slot_at(operator, serial), "ticket") != serial + 1:
            return


@inlined
def drain_apart(header: Header, tally: Tally, operator: Operator) -> None:
    """`drain` as a call, where speed allows."""
    apart()
    drain(header, tally, operator)


@inlined
def drain_if_ready(header: Header, tally: Tally, operator: Operator) -> None:
    """Send what is ready, if anything is."""
    serial = load_atomic(operator, "next")
    if load_atomic(slot_at(operator, serial), "ticket") == serial + 1:
        drain_apart(header, tally, operator)
