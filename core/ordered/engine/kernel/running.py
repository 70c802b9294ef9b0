"""Running: an operator applied to the tuples that a worker claimed.

Chunks: an operator's function in a loop over tuples, compiled with it.

The loop writes the outputs of a tuple to its own place in the ring buffer, and then its ticket, so that whoever sends
sees complete outputs: the ticket is written with release order and read with acquire order. Tuples in serial order
share a ticket, which is written at the end of their run: at the latest at the end of the chunk. Their outputs follow
each other from the place of the first. There is room, as no tuple of a run has more outputs than its place takes.
"""

from functools import cache

from adapt.core.atomics import (
    apart,
    clock_ns,
    exchange,
    fetch_add,
    fixed,
    give_way,
    load,
    load_atomic,
    operate,
    publish,
    release,
    replace,
    run_chunk,
    short_loops,
    store,
)
from adapt.core.compiled import AtAddress, flattened, inlined, record_at
from adapt.core.ordered.engine.kernel.layout import (
    FAULTY,
    GOES_ON,
    LOCK,
    OPERATOR,
    RETRY,
    TIMED,
    Header,
    Operator,
    Tally,
    partition_at,
)
from adapt.core.ordered.engine.kernel.reorder_buffer import drain_apart, rest, send_ready
from adapt.core.ordered.engine.kernel.work_queue import (
    BARE,
    COPY,
    IN_BLOCK,
    MARK,
    MARKED,
    MOST_IN_RUN,
    PUNCTUATION,
    clear_marks,
    copy_words,
    count_bare,
    hand_on,
    outputs_at,
    run_ticket,
    ticket_of,
    tuple_at,
)

MADE = 12
"""Bits of the result of a loop that hold its tuples; the bits above hold their outputs."""

_SIGNATURE = "int64(int64, int64, int64, int64, int64, int64)"


def step(words: int, partition: int, given: int, outputs: int) -> int:
    """The operator's function; it replaces this when the loop is compiled."""
    raise NotImplementedError


def chunk(operator_at: int, partition: int, serials: int, first: int, tuples: int, room: int) -> int:
    """Run the function on tuples up to the next marked one.

    Or up to where a ring buffer begins anew.

    The tuples are those from the serial number `first` on or, with an address `serials`, those of a lane whose serial
    numbers are there from the place `first` on. With an address `room`, it runs on the one tuple whose address is
    `first`, marked or not, and leaves the outputs there without a ticket.

    Returns:
        The tuples and their outputs (`MADE`), or the result of the function that failed, below 0.
    """
    operator = record_at(operator_at, OPERATOR, 0)
    words, slots, partitions = fixed(operator, "words_at"), fixed(operator, "slots_at"), fixed(operator, "master_at")
    queue, mask, size = fixed(operator, "queue_at"), fixed(operator, "queue_mask"), 8 * fixed(operator, "in_words")
    places, ring_mask = fixed(operator, "outputs_at"), fixed(operator, "ring_mask")
    place_size, output_size = 8 * fixed(operator, "slot_output_words"), 8 * fixed(operator, "out_words")
    most_outputs, made, done = fixed(operator, "most_outputs"), 0, 0
    most_run = tuples if tuples * most_outputs <= MOST_IN_RUN else 1
    if not serials and not room:
        tuples = min(tuples, mask + 1 - (first & mask), ring_mask + 1 - (first & ring_mask))
    while done < tuples:
        serial, most = first + done, min(tuples - done, most_run)
        if serials:
            serial, most = load(serials, serial & mask), 1
        given, outputs = queue + (serial & mask) * size, places + (serial & ring_mask) * place_size
        if room:
            given, outputs = first, room
        held, run, more = 1, 0, 0
        while run < most and (not load(given, MARK) or room):
            if partitions and not room:
                partition = load(partitions, (serial + run) & mask)
            held = step(words, partition, given + 8, outputs + 8)
            if held == 1:
                store(outputs, MARK, 0)
                outputs += output_size
            elif 0 <= held <= most_outputs:
                for _ in range(held):
                    store(outputs, MARK, 0)
                    outputs += output_size
                more += held - 1
            else:
                break
            run += 1
            given += size
        if run and not room:
            publish(slots, serial & ring_mask, run_ticket(serial, run, run + more))
        made += run + more
        done += run
        if 0 <= held <= most_outputs:
            if run < most:
                break
            continue
        if held < 0:
            return held
        clear_marks(operator, load(outputs, 1), held)
        if not room:
            store(places + ((serial + run) & ring_mask) * place_size, 1, load(outputs, 1))
            publish(slots, (serial + run) & ring_mask, ticket_of(serial + run) | held | IN_BLOCK)
        made += held
        done += 1
    return made << MADE | done


@cache
def chunk_form(function: AtAddress) -> AtAddress:
    """The loop over chunks of an operator's function."""
    return function.within(_SIGNATURE, chunk, "step")


@inlined
def _run_marked(
    header: Header, tally: Tally, operator: Operator, partition: int, given: int, outputs: int
) -> tuple[int, int]:
    """Run the operator on a marked tuple; returns its outputs, and their block if they have one.

    The last output carries the mark on; a tuple without outputs sends a tuple without fields instead. The last copy of
    a punctuation is a separate output after the others, for which there is always room."""
    apart()
    mark, words = load(given, MARK), fixed(operator, "out_words")
    number = mark & (COPY - 1)
    if number and fixed(operator, "number") == 0 and not fixed(header, "model_workers_at"):
        record_at(fixed(header, "marks_at"), TIMED, number - 1).entered = clock_ns()
    count = 0
    if mark < PUNCTUATION:
        count = run_chunk(fixed(operator, "function"), fixed(operator, "here"), partition, 0, given, 1, outputs)
        if count > 0:
            count >>= MADE
    else:
        count_bare(tally)
        if mark < BARE and operator.closing:
            count = operate(operator.closing, fixed(operator, "words_at"), partition, given + 8, outputs + 8)
    if count < 0:
        return count, 0
    block = load(outputs, 1) if count > fixed(operator, "most_outputs") else 0
    if block:
        outputs = block
    clear_marks(operator, outputs, count)
    if PUNCTUATION <= mark < BARE:
        if partition == fixed(operator, "partitions") - 1:
            tally.bare_made += 1
            hand_on(given, outputs + 8 * count * words, mark, words)
            count += 1
    elif count:
        store(outputs, (count - 1) * words, number)
    else:
        tally.bare_made += 1
        store(outputs, MARK, number | BARE)
        count = 1
    return count, block


@inlined
def run_one(header: Header, tally: Tally, operator: Operator, partition: int, serial: int, room: int) -> int:
    """Run the operator on a tuple, marked or not.

    Returns its ticket, which is not yet in the ring buffer, or a number below 0 if the function failed. The outputs are
    in a block, or at the address `room`.
    """
    apart()
    given, ticket = tuple_at(operator, serial), ticket_of(serial)
    if load(given, MARK):
        held, block = _run_marked(header, tally, operator, partition, given, room)
        ticket |= MARKED
    else:
        held = run_chunk(fixed(operator, "function"), fixed(operator, "here"), partition, 0, given, 1, room)
        if held > 0:
            held >>= MADE
        block = held > fixed(operator, "most_outputs")
    if held < 0:
        return held
    tally.done += 1
    tally.made += held
    if block:
        ticket |= IN_BLOCK
    return ticket | held


@inlined
def _wait_for_room(header: Header, tally: Tally, operator: Operator, serial: int) -> None:
    """Wait until a tuple's outputs have room in the ring buffer, or the run ends: the paper's blocked worker."""
    apart()
    start, moved, since, counted = clock_ns(), -1, 0, -1
    while serial > load_atomic(operator, "next") + fixed(operator, "ring_mask") and not load_atomic(header, "stop"):
        tally.retries += 1
        drain_apart(header, tally, operator)
        moved, since, counted = rest(header, moved, since, counted, 0)
    tally.waited_ns += clock_ns() - start


@inlined
def _send_one(header: Header, tally: Tally, scratch: int, operator: Operator, partition: int, serial: int) -> bool:
    """Run a single tuple, and put its outputs into the ring buffer; whether the worker goes on.

    With `RETRY`, it waits for room there, holding the outputs.
    """
    apart()
    retries = fixed(header, "reorder") == RETRY
    place = outputs_at(operator, serial)
    ticket = run_one(header, tally, operator, partition, serial, scratch if retries else place)
    if ticket < 0:
        fail(header, operator, ticket)
        return False
    if retries:
        if serial > load_atomic(operator, "next") + fixed(operator, "ring_mask"):
            _wait_for_room(header, tally, operator, serial)
        if load_atomic(header, "stop"):
            if ticket & IN_BLOCK:
                release(load(scratch, 1))
            return False
        copy_words(scratch, place, fixed(operator, "slot_output_words"))
    publish(fixed(operator, "slots_at"), serial & fixed(operator, "ring_mask"), ticket)
    return True


@inlined
def _check_in(tally: Tally, operator: Operator, lane: int, serial: int) -> None:
    """Enter a lane, and count overlaps and tuples out of order."""
    apart()
    part = partition_at(operator, lane)
    if fetch_add(part, "inside", 1):
        tally.overlaps += 1
    if serial < part.last:
        tally.disorders += 1


@inlined
def _check_out(operator: Operator, lane: int, last: int) -> None:
    """Leave the lane."""
    apart()
    part = partition_at(operator, lane)
    part.last = last + 1
    fetch_add(part, "inside", -1)


@flattened
def bit_length(number: int) -> int:
    """Bits of a number."""
    bits = 0
    while number > 0:
        number >>= 1
        bits += 1
    return bits


@flattened
def count_ahead(tally: Tally, operator: Operator, end: int) -> None:
    """Count the ring buffer's occupancy as a chunk is claimed."""
    ahead = end - load_atomic(operator, "next")
    if ahead > tally.fullest:
        tally.fullest = ahead
    tally.in_use[bit_length(ahead)] += 1


@inlined
def fail(header: Header, operator: Operator, made: int) -> None:
    """End the run: the operator's function failed."""
    apart()
    header.fault_operator = operator.number
    header.fault = made
    replace(header, "stop", GOES_ON, FAULTY)


@inlined
def run_claimed(
    header: Header, tally: Tally, scratch: int, operator: Operator, lane: int, serials: int, first: int, tuples: int
) -> None:
    """Run the operator on claimed tuples of a lane.

    Their outputs are put into the ring buffer. The tuples are those from the serial number `first` on or, with an
    address `serials`, those whose serial numbers are there from the place `first` on.
    """
    apart()
    short_loops()
    mask, at, checked = fixed(operator, "queue_mask"), 0, fixed(header, "checked") and fixed(operator, "keeps_state")
    last = first + tuples - 1
    if checked:
        _check_in(tally, operator, lane, load(serials, first & mask) if serials else first)
        if serials:  # whose places may be reused once the tuples are sent
            last = load(serials, last & mask)
    while at < tuples:
        if fixed(header, "reorder") != RETRY:
            done = run_chunk(
                *(fixed(operator, "function"), fixed(operator, "here"), lane),
                *(serials, first + at, tuples - at, 0),
            )
            if done < 0:
                fail(header, operator, done)
                return
            tally.made += done >> MADE
            done &= (1 << MADE) - 1
            tally.done += done
            at += done
        if at < tuples:
            serial, partition = first + at, lane
            if serials:
                serial = load(serials, serial & mask)
            if fixed(operator, "master_at"):
                partition = load(fixed(operator, "master_at"), serial & mask)
            if not _send_one(header, tally, scratch, operator, partition, serial):
                return
            at += 1
    if checked:
        _check_out(operator, lane, last)


@inlined
def send(header: Header, tally: Tally, operator: Operator) -> None:
    """Send what is ready; with `LOCK`, wait for the lock first."""
    if fixed(header, "reorder") != LOCK:
        drain_apart(header, tally, operator)
        return
    if exchange(operator, "sending", 1):
        start = clock_ns()
        while exchange(operator, "sending", 1):
            if load_atomic(header, "stop"):
                return
            give_way()
        tally.waited_ns += clock_ns() - start
    send_ready(header, tally, operator)
    exchange(operator, "sending", 0)
