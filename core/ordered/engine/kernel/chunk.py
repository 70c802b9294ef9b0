"""Chunks: an operator's function in a loop over tuples, compiled with it.

The loop writes the outputs of a tuple to its own place in the ring buffer, and then its ticket, so that whoever sends
sees complete outputs: the ticket is written with release order and read with acquire order.
"""

from functools import cache

from adapt.core.atomics import fixed, load, publish, store
from adapt.core.compiled import AtAddress, record_at
from adapt.core.ordered.engine.kernel.layout import OPERATOR
from adapt.core.ordered.engine.kernel.tuples import IN_BLOCK, MARK, clear_marks, ticket_of

MADE = 12
"""Bits of the result of a loop that hold its tuples; the bits above hold their outputs."""

_SIGNATURE = "int64(int64, int64, int64, int64, int64, int64)"


def step(words: int, partition: int, given: int, outputs: int) -> int:
    """The function of the operator, which takes this place when the loop is compiled."""
    raise NotImplementedError


def chunk(operator_at: int, partition: int, serials: int, first: int, tuples: int, room: int) -> int:
    """Run the function on tuples up to the next marked one.

    The tuples are those from the serial number `first` on or, with an address `serials`, those whose serial numbers are
    there from the place `first` on. With an address `room`, it runs on the one tuple whose address is `first`, marked
    or not, and leaves the outputs there without a ticket.

    Returns:
        The tuples and their outputs (`MADE`), or the result of the function that failed, below 0.
    """
    operator = record_at(operator_at, OPERATOR, 0)
    words, most = fixed(operator, "words_at"), fixed(operator, "most_outputs")
    if room:
        held = step(words, partition, first + 8, room + 8)
        if held <= 0:
            return held << MADE | 1 if held == 0 else held
        clear_marks(operator, load(room, 1) if held > most else room, held)
        return held << MADE | 1
    queue, mask, size = fixed(operator, "queue_at"), fixed(operator, "queue_mask"), 8 * fixed(operator, "in_words")
    places, slots = fixed(operator, "outputs_at"), fixed(operator, "slots_at")
    ring_mask, place_size = fixed(operator, "ring_mask"), 8 * fixed(operator, "slot_output_words")
    made = 0
    for number in range(tuples):
        serial = first + number
        if serials:
            serial = load(serials, serial & mask)
        given = queue + (serial & mask) * size
        if load(given, MARK):
            return made << MADE | number
        slot = serial & ring_mask
        outputs = places + slot * place_size
        held = step(words, partition, given + 8, outputs + 8)
        ticket = ticket_of(serial) | held
        if held == 1:
            store(outputs, MARK, 0)
        elif held > most:
            ticket |= IN_BLOCK
            clear_marks(operator, load(outputs, 1), held)
        elif held > 0:
            clear_marks(operator, outputs, held)
        elif held < 0:
            return held
        publish(slots, slot, ticket)
        made += held
    return made << MADE | tuples


@cache
def chunk_form(function: AtAddress) -> AtAddress:
    """The loop over chunks of an operator's function."""
    return function.within(_SIGNATURE, chunk, "step")
