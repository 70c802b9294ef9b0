"""Work queue of an operator: a ring buffer in serial order.

A serial number is the number of a tuple in the input of its operator. Where an operator has partitions, each has a
queue of the serial numbers of its tuples, and the master queue has the partition of each tuple.
"""

import numpy as np

from adapt.core.atomics import fixed, load, load_atomic, publish, store
from adapt.core.compiled import flattened, inlined
from adapt.core.ordered.engine.kernel.layout import Operator, partition_at
from adapt.core.ordered.engine.kernel.tuples import BARE, MARK, PUNCTUATION, copy_of, copy_words, tuple_at
from adapt.core.random_bits import mixed


@inlined
def partition_of(operator: Operator, serial: int, mark: int, fields: int) -> int:
    """Partition of a tuple, by its key's number or hash.

    A model without the key uses the serial number instead.
    """
    if mark >= BARE:
        return 0
    if mark >= PUNCTUATION:
        return copy_of(mark)
    at, table = fixed(operator, "key_at"), fixed(operator, "partition_of_at")
    if table:
        return load(table, load(fields, at))
    word = serial if at < 0 else load(fields, at)
    return int(np.int64(mixed(np.uint64(word)) % np.uint64(fixed(operator, "partitions"))))


@inlined
def partition_queue_at(operator: Operator, partition: int) -> int:
    """The address of the queue of a partition."""
    return fixed(operator, "partition_queues_at") + 8 * partition * (fixed(operator, "queue_mask") + 1)


@flattened
def enqueue(operator: Operator, serial: int, mark: int, fields: int) -> None:
    """Write a tuple to its place, before the tail is published."""
    place, mask = tuple_at(operator, serial), fixed(operator, "queue_mask")
    store(place, MARK, mark)
    copy_words(fields, place + 8, fixed(operator, "in_words") - 1)
    if not fixed(operator, "master_at"):
        return
    partition = partition_of(operator, serial, mark, place + 8)
    part = partition_at(operator, partition)
    tail = part.tail
    store(partition_queue_at(operator, partition), tail & mask, serial)
    store(fixed(operator, "master_at"), serial & mask, partition)
    publish(part, "tail", tail + 1)


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
