"""Punctuations: one copy for each partition, handed on by the last."""

from adapt.core.atomics import apart, load, store
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.layout import Operator, Tally, partition_at
from adapt.core.ordered.engine.tuples import COPY, MARK, PUNCTUATION
from adapt.core.ordered.engine.work_queue import enqueue, room_in


@inlined
def enqueue_copies(operator: Operator, serial: int, mark: int, fields: int) -> int:
    """Write a punctuation for every partition, or for as many more as there is room, at least one; how many that are.

    What times it goes with the last copy.
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
    """A tuple that carries nothing is no load of the partition that its batch was counted for."""
    tally.bare_done += 1
    if operator.keeps_state:
        partition_at(operator, partition).load -= 1


@inlined
def hand_on(given: int, output: int, mark: int, words: int) -> None:
    """Write a punctuation as an output: of its fields, the time."""
    store(output, MARK, PUNCTUATION | mark & (COPY - 1))
    store(output, 1, load(given, 1))
    for at in range(2, words):
        store(output, at, 0)
