"""Running: an operator applied to the tuples that a worker claimed."""

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
from adapt.core.compiled import flattened, inlined, record_at
from adapt.core.ordered.engine.kernel.chunk import MADE
from adapt.core.ordered.engine.kernel.codes import FAULTY, GOES_ON, LOCK, RETRY
from adapt.core.ordered.engine.kernel.egress import rest
from adapt.core.ordered.engine.kernel.layout import TIMED, Header, Operator, Tally, partition_at
from adapt.core.ordered.engine.kernel.punctuation import count_bare, hand_on
from adapt.core.ordered.engine.kernel.reorder_buffer import drain_apart, send_ready
from adapt.core.ordered.engine.kernel.work_queue import (
    BARE,
    COPY,
    IN_BLOCK,
    MARK,
    MARKED,
    PUNCTUATION,
    clear_marks,
    copy_words,
    outputs_at,
    ticket_of,
    tuple_at,
)


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
