"""Chunks: an operator's function in a loop over tuples, compiled with it.

The loop writes the outputs of a tuple to its own place in the ring buffer, and then its ticket, so that whoever sends
sees complete outputs: the ticket is written with release order and read with acquire order. Tuples in serial order that
have one output each share a ticket, which is written at the end of their run: at the latest at the end of the chunk.
"""

from functools import cache

from adapt.core.atomics import apart, fixed, load, publish, store
from adapt.core.compiled import AtAddress, inlined, record_at
from adapt.core.ordered.engine.kernel.layout import OPERATOR, Operator
from adapt.core.ordered.engine.kernel.tuples import HELD, IN_BLOCK, MARK, RUN, clear_marks, ticket_of

MADE = 12
"""Bits of the result of a loop that hold its tuples; the bits above hold their outputs."""

_SIGNATURE = "int64(int64, int64, int64, int64, int64, int64)"


def step(words: int, partition: int, given: int, outputs: int) -> int:
    """The operator's function; it replaces this when the loop is compiled."""
    raise NotImplementedError


@inlined
def _marked_off(operator: Operator, outputs: int, held: int) -> int:
    """Mark any number of outputs as ordinary tuples; returns it, with `IN_BLOCK` if they are in a block."""
    apart()
    if held > fixed(operator, "most_outputs"):
        clear_marks(operator, load(outputs, 1), held)
        return held | IN_BLOCK
    if held > 0:
        clear_marks(operator, outputs, held)
    return held


def chunk(operator_at: int, partition: int, serials: int, first: int, tuples: int, room: int) -> int:
    """Run the function on tuples up to the next marked one.

    Or up to where a ring buffer begins anew.

    The tuples are those from the serial number `first` on or, with an address `serials`, those of a lane whose serial
    numbers are there from the place `first` on. With an address `room`, it runs on the one tuple whose address is
    `first`, marked or not, and leaves the outputs there without a ticket.

    Returns:
        The tuples and their outputs (`MADE`), or the result of the function that failed, below 0.
    """
    operator = record_at(operator_at, OPERATOR, 0)
    words, slots, partitions = fixed(operator, "words_at"), fixed(operator, "slots_at"), fixed(operator, "master_at")
    queue, mask, size = fixed(operator, "queue_at"), fixed(operator, "queue_mask"), 8 * fixed(operator, "in_words")
    places, ring_mask = fixed(operator, "outputs_at"), fixed(operator, "ring_mask")
    place_size, made, done = 8 * fixed(operator, "slot_output_words"), 0, 0
    most_run = tuples if place_size == 8 * fixed(operator, "out_words") else 1
    if not serials and not room:
        tuples = min(tuples, mask + 1 - (first & mask), ring_mask + 1 - (first & ring_mask))
    while done < tuples:
        serial, most = first + done, min(tuples - done, most_run)
        if serials:
            serial, most = load(serials, serial & mask), 1
        given, outputs = queue + (serial & mask) * size, places + (serial & ring_mask) * place_size
        if room:
            given, outputs = first, room
        held, run = 1, 0
        while run < most and (not load(given, MARK) or room):
            if partitions and not room:
                partition = load(partitions, (serial + run) & mask)
            held = step(words, partition, given + 8, outputs + 8)
            if held != 1:
                break
            store(outputs, MARK, 0)
            run += 1
            given += size
            outputs += place_size
        if run and not room:
            publish(slots, serial & ring_mask, ticket_of(serial) | RUN | run if run > 1 else ticket_of(serial) | 1)
        made += run
        done += run
        if held == 1:
            if run < most:
                break
            continue
        held = _marked_off(operator, outputs, held)
        if held < 0:
            return held
        if not room:
            publish(slots, (serial + run) & ring_mask, ticket_of(serial + run) | held)
        made += held & HELD
        done += 1
    return made << MADE | done


@cache
def chunk_form(function: AtAddress) -> AtAddress:
    """The loop over chunks of an operator's function."""
    return function.within(_SIGNATURE, chunk, "step")
