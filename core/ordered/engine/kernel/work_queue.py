"""Work queue of an operator: a ring buffer in serial order.

A mark is 0, or the number of a timed tuple plus 1. A timed tuple that a filter drops goes on without fields (`BARE`),
so that selective chains are timed too. A punctuation is a tuple whose first field is the time up to which all tuples
have arrived.

A serial number is the number of a tuple in the input of its operator. Where an operator has partitions, the master
queue has the partition of each tuple, and each lane has a queue of the serial numbers of its tuples. A lane is one
partition, or several, so that a chunk has enough tuples of each lane: one worker at a time processes a lane.

Punctuations: one copy per partition; the last copy goes on.

The copies have consecutive serial numbers, so the last one follows all outputs that the others cause.

Ingress: rows of the input enter the first work queue.
"""

import numpy as np

from adapt.core.atomics import apart, clock_ns, exchange, fixed, load, load_atomic, publish, put, short_loops, store
from adapt.core.compiled import fetch_ahead, flattened, inlined, record_at
from adapt.core.ordered.engine.kernel.layout import (
    LINE_OF_WORDS,
    TIMED,
    Header,
    Operator,
    Tally,
    operator_at,
    partition_at,
)
from adapt.core.ordered.functions.routed import edge_of, is_passed, key_place
from adapt.core.random_bits import mixed

MARK, BARE, PUNCTUATION, COPY = 0, 1 << 62, 1 << 61, 1 << 40
"""Word of a tuple that holds its mark; flag of a tuple without fields; flag of a punctuation; unit of the partition
number in the mark of a punctuation's copy. Numbers of timed tuples are below that unit."""


HELD_BITS = 30
RUN, MARKED, IN_BLOCK, HELD = 1 << 27, 1 << 28, 1 << 29, (1 << 27) - 1
"""A ticket is the word of a tuple in the ring buffer: its serial number plus 1, from this bit on; whether an output is
marked; whether the outputs are in a block, whose address is the first field of its place; and how many they are. The
ticket of a run stands for this tuple and the next ones, whose outputs without marks follow each other in memory."""

RUN_BITS, MOST_RUN, MOST_IN_RUN = 12, (1 << 12) - 1, (1 << 15) - 1
"""In the ticket of a run, the bits of its tuples, below those of their outputs; and the most of both."""


@flattened
def ticket_of(serial: int) -> int:
    """The ticket of a tuple without outputs."""
    return (serial + 1) << HELD_BITS


@flattened
def run_ticket(serial: int, tuples: int, outputs: int) -> int:
    """The ticket of consecutive tuples whose outputs follow each other."""
    return ticket_of(serial) | (outputs if tuples == 1 else RUN | outputs << RUN_BITS | tuples)


@flattened
def is_ready(operator: Operator, serial: int) -> bool:
    """Whether the outputs of a tuple are in the ring buffer."""
    ticket = load_atomic(fixed(operator, "slots_at"), serial & fixed(operator, "ring_mask"))
    return ticket & -(1 << HELD_BITS) == ticket_of(serial)


@inlined
def copy_of(mark: int) -> int:
    """The partition that a copy of a punctuation is for."""
    return (mark & (PUNCTUATION - 1)) // COPY


@flattened
def copy_words(source: int, place: int, words: int) -> None:
    """Copy words."""
    for at in range(words):
        put(place, at, load(source, at))


@flattened
def move_words(source: int, place: int, words: int) -> None:
    """Copy many words, which are apart."""
    for at in range(words):
        store(place, at, load(source, at))


@flattened
def clear_marks(operator: Operator, outputs: int, count: int) -> None:
    """Mark outputs as ordinary tuples."""
    size = fixed(operator, "out_words")
    for output in range(count):
        put(outputs, output * size, 0)


@inlined
def tuple_at(operator: Operator, serial: int) -> int:
    """The address of a tuple in the work queue."""
    return fixed(operator, "queue_at") + 8 * (serial & fixed(operator, "queue_mask")) * fixed(operator, "in_words")


@inlined
def outputs_at(operator: Operator, serial: int) -> int:
    """Address of a serial number's outputs in the ring buffer."""
    slot = serial & fixed(operator, "ring_mask")
    return fixed(operator, "outputs_at") + 8 * slot * fixed(operator, "slot_output_words")


@inlined
def partition_of(operator: Operator, serial: int, mark: int, fields: int) -> int:
    """Partition of a tuple, by its key's number or hash.

    A model without the key uses the serial number instead, as do tuples of a graph that are only passed on.
    """
    if mark >= BARE:
        return 0
    if mark >= PUNCTUATION:
        return copy_of(mark)
    at, table, routes = fixed(operator, "key_at"), fixed(operator, "partition_of_at"), fixed(operator, "routes_at")
    if routes:
        at = key_place(edge_of(routes, fields))
    if table and at >= 0:
        return load(table, load(fields, at))
    word = serial if at < 0 else load(fields, at)
    return int(np.int64(mixed(np.uint64(word)) % np.uint64(fixed(operator, "partitions"))))


@inlined
def only_passes(operator: Operator, fields: int) -> bool:
    """Whether a tuple of a graph is not for this operator."""
    routes = fixed(operator, "routes_at")
    return routes != 0 and is_passed(edge_of(routes, fields))


@inlined
def partition_queue_at(operator: Operator, lane: int) -> int:
    """The address of the queue of a lane."""
    return fixed(operator, "partition_queues_at") + 8 * lane * (fixed(operator, "queue_mask") + 1)


@inlined
def _replica_of(operator: Operator, serial: int, partition: int) -> int:
    """Replica of a tuple: replicas take partitions, or tuples of an operator without a state, in turn."""
    return (partition if fixed(operator, "keeps_state") else serial) % fixed(operator, "replicas")


@inlined
def _delegate(operator: Operator, serial: int, lane: int) -> None:
    """Put a tuple into the queue of its lane."""
    part = partition_at(operator, lane)
    tail = part.tail
    store(partition_queue_at(operator, lane), tail & fixed(operator, "queue_mask"), serial)
    publish(part, "tail", tail + 1)


@inlined
def _assign(operator: Operator, serial: int, mark: int, fields: int) -> None:
    """Put a tuple into the queue of its lane, and count it."""
    mask = fixed(operator, "queue_mask")
    partition = partition_of(operator, serial, mark, fields)
    if mark < PUNCTUATION and not only_passes(operator, fields):
        partition_at(operator, partition).load += 1
    store(fixed(operator, "master_at"), serial & mask, partition)
    if fixed(operator, "replicas"):
        _delegate(operator, serial, _replica_of(operator, serial, partition))
    elif fixed(operator, "partition_queues_at"):
        _delegate(operator, serial, partition & fixed(operator, "lanes"))


@inlined
def enqueue(operator: Operator, serial: int, mark: int, fields: int) -> None:
    """Write a tuple to its place, before the tail is published."""
    apart()
    place = tuple_at(operator, serial)
    store(place, MARK, mark)
    copy_words(fields, place + 8, fixed(operator, "in_words") - 1)
    if fixed(operator, "master_at"):
        _assign(operator, serial, mark, place + 8)


@inlined
def _assign_plain(operator: Operator, serial: int, fields: int, step: int, count: int) -> None:
    """`_assign` for several tuples without marks, whose fields are `step` bytes apart."""
    apart()
    short_loops()
    master, mask = fixed(operator, "master_at"), fixed(operator, "queue_mask")
    at, table = fixed(operator, "key_at"), fixed(operator, "partition_of_at")
    if table and at >= 0 and not fixed(operator, "routes_at"):  # a loop of its own, which is 6 % of a row faster
        for number in range(serial, serial + count):
            partition = load(table, load(fields, at))
            partition_at(operator, partition).load += 1
            store(master, number & mask, partition)
            fields += step
    else:
        for number in range(serial, serial + count):
            partition = partition_of(operator, number, 0, fields)
            partition_at(operator, partition).load += 1
            store(master, number & mask, partition)
            fields += step
    if fixed(operator, "replicas"):
        for number in range(serial, serial + count):
            _delegate(operator, number, _replica_of(operator, number, load(master, number & mask)))
    elif fixed(operator, "partition_queues_at"):
        for number in range(serial, serial + count):
            _delegate(operator, number, load(master, number & mask) & fixed(operator, "lanes"))


@inlined
def enqueue_plain(operator: Operator, serial: int, tuples: int, count: int) -> None:
    """`enqueue` for several tuples without marks."""
    apart()
    size, mask = fixed(operator, "in_words"), fixed(operator, "queue_mask")
    before = min(count, mask + 1 - (serial & mask))
    move_words(tuples, tuple_at(operator, serial), before * size)
    move_words(tuples + 8 * before * size, fixed(operator, "queue_at"), (count - before) * size)
    if fixed(operator, "master_at"):
        _assign_plain(operator, serial, tuples + 8, 8 * size, count)


@inlined
def enqueue_rows(operator: Operator, serial: int, rows: int, count: int) -> None:
    """`enqueue` for several rows of the input, which have no marks."""
    apart()
    words, mask = fixed(operator, "in_words"), fixed(operator, "queue_mask")
    before = min(count, mask + 1 - (serial & mask))
    for line in range(count * (words - 1) // 8):  # of the next rows, which may lie beyond the end: a hint
        fetch_ahead(rows + 8 * count * (words - 1), LINE_OF_WORDS, line)
    _copy_rows(operator, rows, tuple_at(operator, serial), before)
    _copy_rows(operator, rows + 8 * before * (words - 1), fixed(operator, "queue_at"), count - before)
    if fixed(operator, "master_at"):
        _assign_plain(operator, serial, rows, 8 * (words - 1), count)


@flattened
def _copy_rows(operator: Operator, rows: int, place: int, count: int) -> None:
    """Copy rows, with a mark of 0 before each."""
    words = fixed(operator, "in_words")
    if words == 2:  # loops of their own, which the compiler vectorizes
        for row in range(count):
            store(place, 2 * row, 0)
            store(place, 2 * row + 1, load(rows, row))
    elif words == 3:
        for row in range(count):
            store(place, 3 * row, 0)
            store(place, 3 * row + 1, load(rows, 2 * row))
            store(place, 3 * row + 2, load(rows, 2 * row + 1))
    else:
        for _ in range(count):
            store(place, MARK, 0)
            copy_words(rows, place + 8, words - 1)
            rows += 8 * (words - 1)
            place += 8 * words


@inlined
def room_in(operator: Operator, wanted: int) -> int:
    """Free places for the one sender; exact if fewer than wanted."""
    tail = operator.tail
    capacity = operator.queue_mask + 1
    room = operator.seen_next + capacity - tail
    if room < wanted:
        operator.seen_next = load_atomic(operator, "next")
        room = operator.seen_next + capacity - tail
    return room


@inlined
def enqueue_copies(operator: Operator, serial: int, mark: int, fields: int) -> int:
    """Write further copies of a punctuation; returns their number.

    As many as have room, at least one.

    The last copy carries the mark for timing.
    """
    apart()
    copied, copies = operator.copied, operator.partitions
    written = serial - operator.tail
    more = min(copies - copied, room_in(operator, copies + written) - written)
    for copy in range(copied, copied + more):
        number = mark & (COPY - 1) if copy == copies - 1 else 0
        enqueue(operator, serial + copy - copied, PUNCTUATION | copy * COPY | number, fields)
    operator.copied = (copied + more) % copies
    return more


@inlined
def count_bare(tally: Tally) -> None:
    """Count a tuple without data."""
    tally.bare_done += 1


@inlined
def hand_on(given: int, output: int, mark: int, words: int) -> None:
    """Write a punctuation as an output; only its time is kept."""
    store(output, MARK, PUNCTUATION | mark & (COPY - 1))
    store(output, 1, load(given, 1))
    for at in range(2, words):
        store(output, at, 0)


MOST_FED = 1024
"""Rows that enter at once."""


@inlined
def current_ns(header: Header) -> int:
    """The time by the machine's clock, or by the model's."""
    return header.now_ns if fixed(header, "model_workers_at") else clock_ns()


@flattened
def _plain_rows(header: Header, row: int) -> int:
    """Rows from this one on up to the next one that is timed or a punctuation."""
    every, plain = fixed(header, "mark_every"), header.punctuation_row - row
    return min(plain, -row % every) if every else plain


@flattened
def _take_in(header: Header, operator: Operator, row: int, serial: int) -> int:
    """Enqueue a row, for which there is room; returns how many tuples it becomes."""
    fields = fixed(header, "ingress_at") + 8 * row * (fixed(operator, "in_words") - 1)
    every, mark = fixed(header, "mark_every"), 0
    if every and row % every == 0:
        mark = row // every + 1
        arrivals = fixed(header, "arrivals_at")
        fed_ns = fixed(header, "start_ns") + load(arrivals, row) if arrivals else current_ns(header)
        record_at(fixed(header, "marks_at"), TIMED, mark - 1).fed = fed_ns
    if row < header.punctuation_row:
        enqueue(operator, serial, mark, fields)
        return 1
    copies = enqueue_copies(operator, serial, mark, fields)
    if operator.copied == 0:
        rows = header.punctuation_rows_at
        header.punctuation_row = load(rows, 0)
        header.punctuation_rows_at = rows + 8
    return copies


@inlined
def note_arrivals(header: Header, now_ns: int, is_late: bool) -> None:
    """Count the rows that have arrived by now.

    `is_late` if an idle worker should have noticed them when they did.
    """
    arrivals, rows, every = fixed(header, "arrivals_at"), fixed(header, "rows"), fixed(header, "mark_every")
    row, step = header.arrived, 1
    timed = row + -row % every if every else rows
    while row + step <= rows and load(arrivals, row + step - 1) <= now_ns:
        row += step
        step *= 2
    while step:
        if row + step <= rows and load(arrivals, row + step - 1) <= now_ns:
            row += step
        step //= 2
    while timed < row:
        record_at(fixed(header, "marks_at"), TIMED, timed // every).lag = (
            now_ns - load(arrivals, timed) if is_late else 0
        )
        timed += every
    header.arrived = row


@inlined
def is_empty(header: Header) -> bool:
    """Whether every tuple that entered has left the chain."""
    for number in range(header.operators):
        operator = operator_at(header, number)
        if load_atomic(operator, "next") != load_atomic(operator, "tail"):
            return False
    return True


@inlined
def most_fed(header: Header) -> int:
    """Most rows that may enter now.

    A micro-batch enters once the one before it has left.
    """
    batch = fixed(header, "batch")
    if not batch:
        return MOST_FED
    return batch if is_empty(header) else 0


@inlined
def feed(header: Header, least: int, rested: bool) -> bool:
    """Enqueue the rows that have arrived, if there is room.

    Not if another worker does. `rested` if this worker was idle. Returns whether any entered.
    """
    rows = fixed(header, "rows")
    first = operator_at(header, 0)
    if load_atomic(header, "fed") >= rows or exchange(header, "feeding", 1):
        return False
    due = rows - header.fed
    if fixed(header, "arrivals_at"):
        note_arrivals(header, clock_ns() - fixed(header, "start_ns"), rested)
        due = header.arrived - header.fed
    most = most_fed(header)
    room = room_in(first, max(least, most))
    taken = 0
    if due > 0 and room > 0 and room >= min(least, due) and most:
        taken = feed_rows(header, first, min(due, most), min(room, most))
    exchange(header, "feeding", 0)
    return taken > 0


@inlined
def feed_rows(header: Header, first: Operator, rows: int, room: int) -> int:
    """Enqueue rows while there is room; returns the number of tuples.

    Rows are timed from their arrival if they have arrival times, else from here.
    """
    apart()
    short_loops()
    tail, row = first.tail, header.fed
    serial, end = tail, row + rows
    while row < end and serial < tail + room:
        plain = min(_plain_rows(header, row), end - row, tail + room - serial)
        if plain:
            fields = fixed(header, "ingress_at") + 8 * row * (fixed(first, "in_words") - 1)
            enqueue_rows(first, serial, fields, plain)
            row += plain
            serial += plain
            continue
        serial += _take_in(header, first, row, serial)
        if first.copied:
            break
        row += 1
    publish(first, "tail", serial)
    publish(header, "fed", row)
    return serial - tail
