"""Punctuations: one copy per partition; the last copy goes on.

The copies have consecutive serial numbers, so the last one follows all outputs that the others cause.
"""

from adapt.core.atomics import apart, load, store
from adapt.core.compiled import inlined
from adapt.core.ordered.engine.kernel.layout import Operator, Tally
from adapt.core.ordered.engine.kernel.work_queue import COPY, MARK, PUNCTUATION, enqueue, room_in


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
