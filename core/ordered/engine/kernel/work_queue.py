"""Work queue of an operator: a ring buffer in serial order.

A serial number is the number of a tuple in the input of its operator. Where an operator has partitions, the master
queue has the partition of each tuple, and each lane has a queue of the serial numbers of its tuples. A lane is one
partition, or several, so that a chunk has enough tuples of each lane: one worker at a time processes a lane.
"""

import numpy as np

from adapt.core.atomics import apart, fixed, load, load_atomic, publish, short_loops, store
from adapt.core.compiled import fetch_ahead, flattened, inlined
from adapt.core.ordered.engine.kernel.layout import LINE_OF_WORDS, Operator, partition_at
from adapt.core.ordered.engine.kernel.tuples import (
    BARE,
    MARK,
    PUNCTUATION,
    copy_of,
    copy_words,
    move_words,
    tuple_at,
)
from adapt.core.ordered.functions.routed import edge_of, is_passed, key_place
from adapt.core.random_bits import mixed


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
