"""Reorder buffer: a ring buffer of outputs, sent on in serial order.

One worker at a time sends. Each tuple has a place for its outputs and a ticket, and `next` advances by tuples. Its
places in the work queue and in the ring buffer are reused only after its outputs were sent. Outputs without room in the
ring buffer wait in a memory block of their own.

Orders that make this right on processors that reorder memory accesses: a ticket is written with release order after
the outputs, and read with acquire order before them. `next` is written with release order after the outputs were read,
and read with acquire order before their places are written again. A worker writes its tickets before it exchanges
`sending`; the one that sends exchanges it before it looks for tickets again. Exchanges of one word have one order, so
either the first one gets the flag or the other one sees the ticket.

Source: ordered streams, section 3 (Figure 4).

Egress: tuples that leave are counted, hashed and timed.
"""

import numpy as np

from adapt.core.atomics import (
    apart,
    clock_ns,
    exchange,
    fetch_add,
    fixed,
    give_way,
    load,
    load_atomic,
    publish,
    release,
    replace,
    rest_us,
    short_loops,
)
from adapt.core.compiled import flattened, inlined, record_after, record_at
from adapt.core.ordered.chain.mixing import FOLD
from adapt.core.ordered.engine.kernel.layout import GOES_ON, STALLED, TIMED, Header, Operator, Tally, operator_at
from adapt.core.ordered.engine.kernel.work_queue import (
    BARE,
    COPY,
    HELD,
    IN_BLOCK,
    MARK,
    MARKED,
    MOST_RUN,
    PUNCTUATION,
    RUN,
    RUN_BITS,
    copy_words,
    current_ns,
    enqueue,
    enqueue_copies,
    enqueue_plain,
    is_empty,
    is_ready,
    outputs_at,
    room_in,
    run_ticket,
    ticket_of,
)


@inlined
def _time_leaving(header: Header, mark: int) -> None:
    """Record when a timed tuple leaves."""
    apart()
    number = (mark & (COPY - 1)) - 1
    record_at(header.marks_at, TIMED, number).left = current_ns(header)


@inlined
def _keep(header: Header, left: int, fields: int, words: int) -> None:
    """Keep a tuple that leaves."""
    apart()
    copy_words(fields, fixed(header, "kept_at") + 8 * (left & fixed(header, "kept_mask")) * words, words)


@inlined
def awaits_taking(header: Header) -> bool:
    """Whether tuples cannot leave until kept ones are taken out."""
    return fixed(header, "waits") != 0 and load_atomic(header, "egress_tuples") >= load_atomic(header, "keep")


@flattened
def _folded(operator: Operator, fold: np.uint64, place: int) -> np.uint64:
    """The hash with another tuple."""
    at = 1
    # Atomic, or the loop would be unrolled, which is slower for a few words.
    while at < load_atomic(operator, "out_words"):
        fold = (fold ^ np.uint64(load(place, at))) * np.uint64(FOLD)
        fold = fold ^ (fold >> np.uint64(32))
        at += 1
    return fold


@inlined
def leave_plain(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """`leave` for outputs without marks."""
    apart()
    size, left, keep = fixed(operator, "out_words"), header.egress_tuples, load_atomic(header, "keep")
    if fixed(header, "waits"):
        count = max(min(count, keep - left), 0)
    for number in range(min(count, keep - left)):
        _keep(header, left + number, outputs + 8 * (number * size + 1), size - 1)
    fold, place, end = np.uint64(header.egress_hash), outputs, outputs + 8 * count * size
    while place < end:
        fold = _folded(operator, fold, place)
        place += 8 * size
    header.egress_hash = np.int64(fold)
    publish(header, "egress_tuples", left + count)
    return count


@inlined
def leave(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """Emit outputs of the last operator.

    As many as may leave; returns their number.
    """
    size = fixed(operator, "out_words")
    fold = np.uint64(header.egress_hash)
    left = header.egress_tuples
    keep, waits = load_atomic(header, "keep"), fixed(header, "waits")
    gone = 0
    while gone < count:
        place = outputs + 8 * gone * size
        mark = load(place, MARK)
        if waits and left >= keep and mark < PUNCTUATION:
            break
        gone += 1
        if mark & (COPY - 1):
            _time_leaving(header, mark)
        if mark >= PUNCTUATION:
            continue
        fold = _folded(operator, fold, place)
        if left < keep:
            _keep(header, left, place + 8, size - 1)
        left += 1
    header.egress_hash = np.int64(fold)
    publish(header, "egress_tuples", left)
    return gone


_REST_AFTER, _REST_US = 50, 50
"""Rounds without progress of any worker, or without work, after which a worker sleeps; and the length of the sleep."""

_ROUND = 1 << 16
"""More than all workers."""

WAKING_US, LONGEST_US = 100, 1000
"""How much earlier than the next arrival an idle worker wakes, since systems wake it late; and its longest sleep."""


@inlined
def _progress(header: Header) -> int:
    """A number that grows whenever a tuple moves, or is found waiting for something outside of the chain."""
    moved = load_atomic(header, "fed") + load_atomic(header, "delays")
    for number in range(header.operators):
        operator = operator_at(header, number)
        moved += load_atomic(operator, "head") + load_atomic(operator, "tail") + load_atomic(operator, "next")
    return moved


@inlined
def _awaits_arrival(header: Header) -> bool:
    """Whether rows are still to arrive, and have room."""
    first = operator_at(header, 0)
    filled = load_atomic(first, "tail") - load_atomic(first, "next")
    return fixed(header, "arrivals_at") != 0 and load_atomic(header, "fed") < header.rows and filled <= first.queue_mask


@inlined
def _pause_us(header: Header) -> int:
    """Time until the next row arrives, less the time to wake up.

    At most 0 if there is something to do.
    """
    fed = load_atomic(header, "fed")
    if not fixed(header, "arrivals_at") or fed >= header.rows or not is_empty(header):
        return 0
    due_ns = load(fixed(header, "arrivals_at"), fed) - (clock_ns() - fixed(header, "start_ns"))
    return min(due_ns // 1000 - WAKING_US, LONGEST_US)


@inlined
def rest(header: Header, moved: int, since: int, counted: int, unused: int) -> tuple[int, int, int]:
    """Yield to other threads, and detect a stalled run.

    Only workers move tuples. A run has stalled if, for `patience` rounds, no tuple has moved and every worker has found
    no work; two rounds would be enough. A worker that the system does not let run completes no round, however long
    that takes. Rounds do not count while tuples wait for rows
    to arrive, or for kept ones to be taken. `unused` are the rests since this worker had work; where rows arrive, it
    does not sleep for that, so that it notices them in time.

    Returns:
        The progress, the round from which on there was none, and the round in which this worker counts; arguments of
        the next call.
    """
    seen = load_atomic(header, "vain")
    turn, now = seen // _ROUND, _progress(header)
    if now != moved:
        moved, since = now, turn + 1
    elif awaits_taking(header) or _awaits_arrival(header):
        fetch_add(header, "delays", 1)
    elif turn - since > header.patience:
        replace(header, "stop", GOES_ON, STALLED)
    elif turn != counted:
        more = seen + 1
        if more % _ROUND == header.workers:
            more = (turn + 1) * _ROUND
        if replace(header, "vain", seen, more):
            counted = turn
    pause_us = _pause_us(header)
    if turn - since >= _REST_AFTER or (unused >= _REST_AFTER and not fixed(header, "arrivals_at")):
        pause_us = _REST_US
    if pause_us > 0:
        rest_us(pause_us)
    else:
        give_way()
    return moved, since, counted


@inlined
def is_finished(header: Header) -> bool:
    """Whether every tuple has left the chain."""
    return load_atomic(header, "fed") >= header.rows and is_empty(header)


@inlined
def _pass_on(operator: Operator, outputs: int, count: int) -> int:
    """Enqueue outputs at the next operator as far as there is room; returns their number."""
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


@inlined
def _send_marked(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """Send outputs, some of them marked; returns how many had room."""
    apart()
    short_loops()
    if fixed(operator, "number") == fixed(header, "operators") - 1:
        return leave(header, operator, outputs, count)
    return _pass_on(operator, outputs, count)


@inlined
def _send_plain(header: Header, operator: Operator, outputs: int, count: int) -> int:
    """`_send_marked` for outputs without marks."""
    if fixed(operator, "number") == fixed(header, "operators") - 1:
        return leave_plain(header, operator, outputs, count)
    down = record_after(operator, 1)
    sent = max(min(count, room_in(down, count)), 0)
    if sent:
        tail = down.tail
        enqueue_plain(down, tail, outputs, sent)
        publish(down, "tail", tail + sent)
    return sent


@flattened
def plain_run(operator: Operator, serial: int) -> int:
    """Ready tuples with one output each.

    They follow each other in memory, and are not marked.
    """
    slots, mask = fixed(operator, "slots_at"), fixed(operator, "ring_mask")
    if fixed(operator, "slot_output_words") != fixed(operator, "out_words"):
        return 0
    slot, tuples = serial & mask, 0
    while slot + tuples <= mask:
        ticket = load_atomic(slots, slot + tuples)
        run = ticket & MOST_RUN
        if ticket == run_ticket(serial + tuples, run, run):
            tuples += run
        else:
            break
    return tuples


@flattened
def _cut_run(operator: Operator, serial: int, sent: int) -> None:
    """Give the rest of a run of single outputs a ticket, if all runs from `serial` on were sent up to within it."""
    slots, mask = fixed(operator, "slots_at"), fixed(operator, "ring_mask")
    while serial < sent:
        serial += load(slots, serial & mask) & MOST_RUN
    if serial > sent:
        publish(slots, sent & mask, run_ticket(sent, serial - sent, serial - sent))


@inlined
def send_next(header: Header, operator: Operator) -> bool:
    """Send the outputs of the next tuple or run, which are ready.

    Returns whether all had room. Needs the flag `sending`.
    """
    apart()
    serial = operator.next
    place, sent = outputs_at(operator, serial), operator.sent
    ticket = load(fixed(operator, "slots_at"), serial & fixed(operator, "ring_mask"))
    held, tuples = ticket & HELD, 1
    if ticket & RUN:
        held, tuples = held >> RUN_BITS, held & MOST_RUN
    outputs = load(place, 1) if ticket & IN_BLOCK else place
    rest, count = outputs + 8 * sent * fixed(operator, "out_words"), held - sent
    if ticket & MARKED:
        sent += _send_marked(header, operator, rest, count)
    elif count:
        sent += _send_plain(header, operator, rest, count)
    if sent < held:
        operator.sent = sent
        return False
    operator.sent = 0
    if ticket & IN_BLOCK:
        release(outputs)
    publish(operator, "next", serial + tuples)
    return True


_AT_ONCE = 64
"""Most tuples that are sent one by one before others see any of it."""


@flattened
def _is_plain(operator: Operator, serial: int) -> bool:
    """Whether a tuple's outputs are ready, in its place, and not marked, and it has a ticket of its own."""
    ticket = load_atomic(fixed(operator, "slots_at"), serial & fixed(operator, "ring_mask"))
    return 0 <= ticket - ticket_of(serial) < RUN


@flattened
def _send_several(header: Header, operator: Operator) -> bool:
    """Send the plain outputs of tuples in turn, and then let others see that at once; whether all had room.

    Workers that look for work read how far this is all the time, so that each change costs them and the sender time.
    """
    serial, put, has_room = operator.next, 0, True
    last, down = fixed(operator, "number") == fixed(header, "operators") - 1, record_after(operator, 1)
    end = serial + _AT_ONCE
    while serial < end and _is_plain(operator, serial):
        count = load(fixed(operator, "slots_at"), serial & fixed(operator, "ring_mask")) & HELD
        if count and last:
            sent = leave_plain(header, operator, outputs_at(operator, serial), count)
        elif count:
            sent = max(min(count, room_in(down, put + count) - put), 0)
            enqueue_plain(down, down.tail + put, outputs_at(operator, serial), sent)
            put += sent
        else:
            sent = 0
        if sent < count:
            operator.sent, has_room = sent, False
            break
        serial += 1
    if put:
        publish(down, "tail", down.tail + put)
    publish(operator, "next", serial)
    return has_room


@flattened
def send_ready(header: Header, tally: Tally, operator: Operator) -> bool:
    """Send ready outputs; returns whether there is no room for more.

    In the next work queue, or for kept tuples.

    Needs the flag `sending`.
    """
    while is_ready(operator, operator.next):
        serial = operator.next
        tuples = plain_run(operator, serial)
        if tuples:
            sent = _send_plain(header, operator, outputs_at(operator, serial), tuples)
            if sent < tuples:
                _cut_run(operator, serial, serial + sent)
            publish(operator, "next", serial + sent)
            is_full = sent < tuples
        elif not operator.sent and _is_plain(operator, serial):
            is_full = not _send_several(header, operator)
        else:
            is_full = not send_next(header, operator)
        if is_full:
            tally.blocked += 1
            return True
    return False


@flattened
def drain(header: Header, tally: Tally, operator: Operator) -> None:
    """Send what is ready, unless another worker is sending."""
    while not exchange(operator, "sending", 1):
        full = send_ready(header, tally, operator)
        exchange(operator, "sending", 0)
        if full or not is_ready(operator, load_atomic(operator, "next")):
            return


@inlined
def drain_apart(header: Header, tally: Tally, operator: Operator) -> None:
    """`drain` as a call, where speed allows."""
    apart()
    drain(header, tally, operator)


@inlined
def drain_if_ready(header: Header, tally: Tally, operator: Operator) -> None:
    """Send what is ready, if anything is."""
    if is_ready(operator, load_atomic(operator, "next")):
        drain_apart(header, tally, operator)
