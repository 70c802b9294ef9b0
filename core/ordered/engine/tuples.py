"""Tuples in memory: a mark and the fields."""

from adapt.core.atomics import fixed, load, put
from adapt.core.compiled import flattened, inlined
from adapt.core.ordered.engine.layout import Operator

MARK, BARE, PUNCTUATION, COPY = 0, 1 << 62, 1 << 61, 1 << 40
"""The place of a mark; of a mark, that there are no fields, that they are those of a punctuation, and the unit in which
it counts the partition that has the copy. Timed tuples are numbered below that unit."""


@inlined
def copy_of(mark: int) -> int:
    """The partition that has this copy of a punctuation."""
    return (mark & (PUNCTUATION - 1)) // COPY


@flattened
def copy_words(source: int, place: int, words: int) -> None:
    for at in range(words):
        put(place, at, load(source, at))


@flattened
def clear_marks(operator: Operator, outputs: int, count: int) -> None:
    size = fixed(operator, "out_words")
    for output in range(count):
        put(outputs, output * size, 0)


@inlined
def tuple_at(operator: Operator, serial: int) -> int:
    """Where a tuple stands in the queue."""
    return fixed(operator, "queue_at") + 8 * (serial & fixed(operator, "queue_mask")) * fixed(operator, "in_words")


@inlined
def outputs_at(operator: Operator, serial: int) -> int:
    """Where the outputs of a serial number stand in the ring."""
    slot = serial & fixed(operator, "ring_mask")
    return fixed(operator, "outputs_at") + 8 * slot * fixed(operator, "slot_output_words")
