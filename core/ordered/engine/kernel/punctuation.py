"""Punctuations: each partition gets a copy, and the last copy goes on.

The copies have serial numbers one after the other, so the last is behind all that the partitions give for the others.
"""

from adapt.core.atomics import apart, load, store
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.kernel.layout import Operator, Tally, partition_at
from adapt.core.ordered.engine.kernel.tuples import COPY, MARK, PUNCTUATION
from adapt.core.ordered.engine.kernel.work_queue import enqueue, room_in


@inlined
def enqueue_copies(operator: Operator, serial: int, mark: int, fields: int) -> int:
    """Write the copies of a punctuation, or as many more as have room, at least one; how many were written.

    The last copy carries the number by which it is timed.
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
def count_bare(tally: Tally, operator: Operator, partition: int) -> None:
    """Count a tuple without data, which is not part of its partition's load."""
    tally.bare_done += 1
    if operator.keeps_state:
        partition_at(operator, partition).load -= 1


@inlined
def hand_on(given: int, output: int, mark: int, words: int) -> None:
    """Write a punctuation as an output; of its fields only the time is kept."""
    store(output, MARK, PUNCTUATION | mark & (COPY - 1))
    store(output, 1, load(given, 1))
    for at in range(2, words):
        store(output, at, 0)
