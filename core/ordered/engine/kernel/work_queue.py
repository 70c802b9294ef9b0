"""Work queue of an operator: a ring buffer in serial order.

A mark is 0, or the number of a timed tuple plus 1. A timed tuple that a filter drops goes on without fields (`BARE`),
so that selective chains are timed too. A punctuation is a tuple whose first field is the time up to which all tuples
have arrived.

A serial number is the number of a tuple in the input of its operator. Where an operator has partitions, the master
queue has the partition of each tuple, and each lane has a queue of the serial numbers of its tuples. A lane is one
partition, or several, so that a chunk has enough tuples of each lane: one worker at a time processes a lane.
"""

import numpy as np

from adapt.core.atomics import apart, fixed, load, load_atomic, publish, put, short_loops, store
from adapt.core.compiled import fetch_ahead, flattened, inlined
from adapt.core.ordered.engine.kernel.layout import LINE_OF_WORDS, Operator, partition_at
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
