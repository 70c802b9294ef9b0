"""Tuples in memory: a mark and the fields.

A mark is 0, or the number of a timed tuple plus 1. A timed tuple that a filter drops goes on without fields (`BARE`),
so that selective chains are timed too. A punctuation is a tuple whose first field is the time up to which all tuples
have arrived."""

from adapt.core.atomics import fixed, load, load_atomic, put, store
from adapt.core.compiled import flattened, inlined
from adapt.core.ordered.engine.kernel.layout import Operator

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
