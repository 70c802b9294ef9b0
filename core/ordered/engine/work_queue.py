"""Work queue of an operator, in the order of serial numbers."""

import numpy as np

from adapt.core.atomics import fixed, load, load_atomic, publish, store
from adapt.core.compiled import flattened, inlined
from adapt.core.ordered.engine.layout import Operator, partition_at
from adapt.core.ordered.engine.tuples import BARE, MARK, PUNCTUATION, copy_of, copy_words
from adapt.core.random_bits import mixed


@inlined
def partition_of(operator: Operator, serial: int, mark: int, fields: int) -> int:
    """Of a key of the stream by its number, or else by the word that is the key; in a model, which has none such, by
    the serial number."""
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
    return fixed(operator, "partition_queues_at") + 8 * partition * (fixed(operator, "queue_mask") + 1)


@flattened
def enqueue(operator: Operator, serial: int, mark: int, fields: int) -> None:
    """Write a tuple into its slot; it has come when the tail is published."""
    slot = serial & fixed(operator, "queue_mask")
    size = fixed(operator, "in_words")
    place = fixed(operator, "queue_at") + 8 * slot * size
    store(place, MARK, mark)
    copy_words(fields, place + 8, size - 1)
    if not fixed(operator, "master_at"):
        return
    partition = partition_of(operator, serial, mark, place + 8)
    part = partition_at(operator, partition)
    tail = part.tail
    mask = fixed(operator, "queue_mask")
    store(partition_queue_at(operator, partition), tail & mask, serial)
    store(fixed(operator, "master_at"), slot, partition)
    publish(part, "tail", tail + 1)


@inlined
def room_in(operator: Operator, wanted: int) -> int:
    """How many tuples the worklist can take, at least where that is fewer than wanted; for its one sender."""
    tail = operator.tail
    capacity = operator.queue_mask + 1
    room = operator.seen_next + capacity - tail
    if room < wanted:
        operator.seen_next = load_atomic(operator, "next")
        room = operator.seen_next + capacity - tail
    return room
